import GattherdModel

/// The metrics of one device: names, aliases, types and newest values.
struct DeviceMetrics: Sendable {
    /// A metric of a stream.
    struct Metric: Hashable, Sendable {
        let name: String
        let alias: UInt64
        let unit: String?
        let isRepeated: Bool
        /// True for occurrences, which are published even if they equal the one before.
        let isEvent: Bool
        fileprivate(set) var type: MetricType
        /// True until the first value decides the type.
        fileprivate var isTypeOpen: Bool
        /// The values of the newest reading; empty until one is known.
        fileprivate(set) var values: [SampleValue] = []
        fileprivate(set) var time: Timestamp?
        /// True if hosts show older values, because the newest ones were historical or too large for the broker.
        var isBehind = false
    }

    private(set) var metrics: [Metric] = []
    private var indices: [String: Int] = [:]
    /// The metrics that descriptions have dropped, by name; they return with their aliases, values and types.
    private var dropped: [String: Metric] = [:]
    /// The indices of the metrics of each stream, by its name.
    private var streams: [String: (definition: StreamDefinition, indices: SparseArray<Int>)] = [:]

    /// Replaces the metrics by described ones; metrics of the same name keep their values and types.
    ///
    /// A sensor that only advertises also keeps the metrics that it has sent: after a reload its description has only
    /// those that were received since.
    ///
    /// - Returns: True if the definitions differ from the former ones.
    mutating func describe(_ description: DeviceDescription, _ aliases: inout AliasPool) -> Bool {
        let former = metrics
        for metric in former { dropped[metric.name] = metric }
        metrics.removeAll()
        indices.removeAll()
        streams.removeAll()
        for stream in description.streams {
            for metric in stream.metrics { add(metric, of: stream.name, &aliases) }
        }
        if !description.isConnectable {
            for metric in former where !metric.values.isEmpty { restore(metric) }
        }
        return Set(metrics.map(\.definition)) != Set(former.map(\.definition))
    }

    /// Adds a dropped metric again, unless it has been described.
    private mutating func restore(_ metric: Metric) {
        guard dropped.removeValue(forKey: metric.name) != nil else { return }
        append(metric)
    }

    /// Adds the metrics of a stream that are missing, and widens types for the values of a reading.
    ///
    /// - Returns: True if a definition has changed.
    mutating func learn(_ reading: JournalReading, _ aliases: inout AliasPool) -> Bool {
        let before = metrics.count
        let indices = indices(of: reading, &aliases)
        var isChanged = metrics.count != before
        for sample in reading.samples {
            guard let index = indices[sample.metric] else { continue }
            if widen(index, for: sample.value) { isChanged = true }
        }
        return isChanged
    }

    private mutating func widen(_ index: Int, for value: SampleValue) -> Bool {
        let metric = metrics[index]
        guard let type = MetricType(of: value, isRepeated: metric.isRepeated) else { return false }
        let widened = metric.isTypeOpen ? type : metric.type.widened(to: type)
        metrics[index].isTypeOpen = false
        metrics[index].type = widened
        return widened != metric.type
    }

    /// Returns the indices of a stream's metrics, after adding those that are missing: of an open stream only those
    /// that the device has sent.
    private mutating func indices(of reading: JournalReading, _ aliases: inout AliasPool) -> SparseArray<Int> {
        let stream = reading.stream
        var indices = SparseArray<Int>()
        if let known = streams[stream.stream], known.definition === stream {
            let isComplete = !stream.isOpen || reading.samples.allSatisfy { known.indices[$0.metric] != nil }
            if isComplete { return known.indices }
            indices = known.indices
        }
        let present = stream.isOpen ? reading.samples.map(\.metric) : Array(stream.metrics.indices)
        for metric in present where indices[metric] == nil && stream.metrics.indices.contains(metric) {
            indices.set(add(stream.metrics[metric], of: stream.stream, &aliases), at: metric)
        }
        streams[stream.stream] = (stream, indices)
        return indices
    }

    /// Adds a metric unless it is there; returns its index.
    @discardableResult
    private mutating func add(
        _ descriptor: MetricDescriptor,
        of stream: String,
        _ pool: inout AliasPool
    ) -> Int {
        let name = Self.name(descriptor, of: stream)
        if let index = indices[name] { return index }
        let earlier = dropped.removeValue(forKey: name)
        var metric = Metric(descriptor, name: name, alias: earlier?.alias ?? pool.next())
        if let earlier { metric.inherit(earlier) }
        append(metric)
        return metrics.count - 1
    }

    private mutating func append(_ metric: Metric) {
        indices[metric.name] = metrics.count
        metrics.append(metric)
    }

    private static func name(_ descriptor: MetricDescriptor, of stream: String) -> String {
        "\(stream)/\(descriptor.name)"
    }

    /// The values of a reading for one metric.
    struct Group {
        let index: Int
        fileprivate(set) var values: [SampleValue]
        /// True if the value differs from the one that hosts show.
        fileprivate(set) var isNew = true
        /// True if hosts do not show the value as the current one.
        fileprivate(set) var isHistorical: Bool
    }

    /// Records the values of a reading, whose stream ``learn(_:_:)`` has seen.
    ///
    /// A value that is older than the newest one is historical, and no birth has it: a stored record that was
    /// downloaded later. The newest value does not count if it is of the future, because the clock was set back since.
    ///
    /// - Parameters:
    ///   - reading: The reading.
    ///   - isHistorical: True if hosts do not show its values as the current ones.
    ///   - now: The time of day.
    /// - Returns: The metrics that the reading has values for, in order.
    mutating func record(_ reading: JournalReading, isHistorical: Bool, at now: Timestamp) -> [Group] {
        var groups = groups(of: reading, isHistorical: isHistorical)
        for (position, group) in groups.enumerated() {
            let metric = metrics[group.index]
            if let newest = metric.time, reading.time < newest, newest <= now {
                groups[position].isHistorical = true
                continue
            }
            groups[position].isNew = metric.values != group.values || metric.isBehind || metric.isEvent
            metrics[group.index].values = group.values
            metrics[group.index].time = reading.time
            metrics[group.index].isBehind = isHistorical
        }
        return groups
    }

    private func groups(of reading: JournalReading, isHistorical: Bool) -> [Group] {
        let newest = streams[reading.stream.stream]
        let known = newest?.definition === reading.stream ? newest?.indices : nil
        var groups: [Group] = []
        for sample in reading.samples {
            guard let index = known?[sample.metric] ?? index(of: sample.metric, in: reading.stream) else { continue }
            if metrics[index].isRepeated, let position = groups.firstIndex(where: { $0.index == index }) {
                groups[position].values.append(sample.value)
            } else {
                groups.append(Group(index: index, values: [sample.value], isHistorical: isHistorical))
            }
        }
        return groups
    }

    /// Returns the index of a metric by its name.
    ///
    /// Readings that are learned together may have different definitions of one stream: the history makes one for each
    /// set of metrics.
    private func index(of metric: Int, in stream: StreamDefinition) -> Int? {
        guard stream.metrics.indices.contains(metric) else { return nil }
        return indices[Self.name(stream.metrics[metric], of: stream.stream)]
    }

    /// Marks all values as shown by hosts.
    mutating func markCurrent() {
        for index in metrics.indices { metrics[index].isBehind = false }
    }

    /// Marks the values of these metrics as missing at hosts.
    mutating func markBehind(_ aliases: Set<UInt64>) {
        for index in metrics.indices where aliases.contains(metrics[index].alias) { metrics[index].isBehind = true }
    }
}

extension DeviceMetrics.Metric {
    init(_ descriptor: MetricDescriptor, name: String, alias: UInt64) {
        self.name = name
        self.alias = alias
        unit = descriptor.unit
        isRepeated = descriptor.isRepeated
        isEvent = descriptor.kind == .event
        type = MetricType(of: descriptor)
        isTypeOpen = !descriptor.isRepeated && (descriptor.kind == .state || descriptor.kind == .event)
    }

    fileprivate mutating func inherit(_ earlier: DeviceMetrics.Metric) {
        values = earlier.values
        time = earlier.time
        isBehind = earlier.isBehind
        guard isRepeated == earlier.isRepeated else { return }
        type = earlier.type
        isTypeOpen = earlier.isTypeOpen
    }

    /// The content of a birth for the metric, without the value.
    struct Definition: Hashable {
        let name: String
        let unit: String?
        let type: MetricType
    }

    var definition: Definition { Definition(name: name, unit: unit, type: type) }

    /// Returns the metric with these values; a definition, for a birth, has the name, the datatype and the unit too.
    func encode(
        _ values: [SampleValue],
        at time: Timestamp,
        isHistorical: Bool = false,
        isDefinition: Bool = false
    ) -> SparkplugMetric {
        var metric = SparkplugMetric(alias: alias, timestamp: time.milliseconds, isHistorical: isHistorical)
        if isDefinition {
            metric.name = name
            metric.datatype = type.datatype.rawValue
            metric.unit = unit
        }
        metric.value = values.isEmpty ? nil : type.encode(values)
        metric.isNull = metric.value == nil
        return metric
    }
}

/// The aliases of an edge node's metrics; each is used once.
struct AliasPool: Hashable, Sendable {
    private var last: UInt64 = 0

    mutating func next() -> UInt64 {
        last += 1
        return last
    }
}

extension Timestamp {
    /// Milliseconds since 1970, as Sparkplug encodes times; 0 before 1970.
    var milliseconds: UInt64 { UInt64(clamping: microseconds / 1000) }
}
