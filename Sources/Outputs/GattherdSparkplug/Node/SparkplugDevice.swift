import GattherdModel

/// A device of the edge node: its metrics, its controls, and its state at hosts.
struct SparkplugDevice: Sendable {
    /// The maximum number of values of one DDATA.
    static let maximumValues = 250

    let name: String
    private(set) var metrics = DeviceMetrics()
    private(set) var controls = DeviceControls()
    /// All controls of the description, allowed or not.
    private var described: [ControlDescriptor] = []
    private(set) var isDescribed = false
    /// True while the link is ready.
    var isOnline = false
    /// True between DBIRTH and DDEATH.
    private(set) var isBorn = false
    /// True if the metrics of DBIRTH are out of date.
    private(set) var isBirthOutdated = false

    init(name: String) {
        self.name = name
    }

    /// True if a birth is due: the device is online and known, or it has been born with other metrics.
    var needsBirth: Bool { isBorn ? isBirthOutdated : isOnlineAndKnown }
    /// True if the device is online and hosts may hear of it.
    var isOnlineAndKnown: Bool { isOnline && (isDescribed || !metrics.metrics.isEmpty) }

    mutating func describe(
        _ description: DeviceDescription,
        _ permissions: ControlPermissions,
        _ aliases: inout AliasPool
    ) {
        isDescribed = true
        described = description.controls
        if metrics.describe(description, &aliases) { isBirthOutdated = true }
        allow(permissions, &aliases)
    }

    /// Shows the controls that `permissions` allow.
    mutating func allow(_ permissions: ControlPermissions, _ aliases: inout AliasPool) {
        let allowed = described.filter { permissions.allows($0.name, of: name) }
        if controls.describe(allowed, &aliases) { isBirthOutdated = true }
    }

    /// Learns the metrics and types of a reading before it is published.
    mutating func learn(_ reading: JournalReading, _ aliases: inout AliasPool) {
        if metrics.learn(reading, &aliases) { isBirthOutdated = true }
    }

    /// Returns the metrics of DBIRTH with their current values.
    mutating func birth(at time: Timestamp) -> [SparkplugMetric] {
        isBorn = true
        isBirthOutdated = false
        let values = metrics.metrics.map { $0.encode($0.values, at: $0.time ?? time, isDefinition: true) }
        metrics.markCurrent()
        return (values + controls.definitions(at: time)).inOrderOfTime
    }

    mutating func die() {
        isBorn = false
    }

    /// Returns the values that are outdated at hosts, because newer ones were historical.
    mutating func overtaken() -> [SparkplugMetric] {
        let behind = metrics.metrics.filter(\.isBehind)
        metrics.markCurrent()
        return behind.compactMap { metric in metric.time.map { metric.encode(metric.values, at: $0) } }.inOrderOfTime
    }

    mutating func valuesAreMissing(_ aliases: Set<UInt64>) {
        metrics.markBehind(aliases)
    }

    mutating func record(_ value: ControlValue, of control: String, at time: Timestamp) -> SparkplugMetric? {
        controls.record(value, of: control, at: time)
    }

    /// Returns the values of a reading.
    ///
    /// - Parameters:
    ///   - reading: The reading.
    ///   - isHistorical: True if its values are not the current ones.
    ///   - isByException: True to leave out current values that equal the previous ones.
    ///   - now: The time of day.
    /// - Returns: The metrics for DDATA, in the order of the samples.
    mutating func values(
        _ reading: JournalReading,
        isHistorical: Bool,
        isByException: Bool,
        at now: Timestamp
    ) -> [SparkplugMetric] {
        metrics.record(reading, isHistorical: isHistorical, at: now).compactMap { group in
            guard group.isNew || group.isHistorical || !isByException else { return nil }
            let metric = metrics.metrics[group.index]
            return metric.encode(group.values, at: reading.time, isHistorical: group.isHistorical)
        }
    }
}

/// Distributes the values of one device to messages.
///
/// A message has no two values of one metric with the same time, and its current values are in the order of time. Only
/// a message of one value may exceed the maximum size.
struct DeviceDataMessages {
    /// The maximum size of a message's metrics in bytes, if the broker accepts that.
    private static let maximumBytes = 16 << 10

    private struct Key: Hashable {
        let alias: UInt64?
        let timestamp: UInt64?
    }

    private(set) var messages: [[SparkplugMetric]] = []
    private var keys: Set<Key> = []
    private let maximumBytes: Int
    /// An upper bound of the size of the last message's metrics.
    private var bytes = 0

    /// - Parameter limit: The maximum size of a message's metrics that the broker accepts, in bytes.
    init(limit: Int) {
        maximumBytes = min(limit, Self.maximumBytes)
    }

    mutating func append(_ metrics: [SparkplugMetric]) {
        for metric in metrics {
            let key = Key(alias: metric.alias, timestamp: metric.timestamp)
            let isEarlier = messages.last?.last.map { ($0.timestamp ?? 0) > (metric.timestamp ?? 0) } ?? true
            let size = metric.maximumSize
            if isEarlier || keys.contains(key) || isFull(for: size) { start() }
            messages[messages.count - 1].append(metric)
            keys.insert(key)
            bytes += size
        }
    }

    private func isFull(for size: Int) -> Bool {
        keys.count >= SparkplugDevice.maximumValues || bytes + size > maximumBytes
    }

    private mutating func start() {
        messages.append([])
        keys.removeAll(keepingCapacity: true)
        bytes = 0
    }
}

extension SparkplugMetric {
    /// An upper bound of the encoded size in bytes of a metric without name and unit.
    fileprivate var maximumSize: Int {
        // The tags, the lengths and the numbers have at most 50 bytes.
        switch value {
        case .string(let text): 50 + text.utf8.count
        case .bytes(let bytes): 50 + bytes.count
        case .int, .long, .float, .double, .boolean, nil: 50
        }
    }
}

extension [SparkplugMetric] {
    /// The metrics by time; those of one time keep their order.
    fileprivate var inOrderOfTime: [SparkplugMetric] {
        let pairs = enumerated().map { (time: $0.element.timestamp ?? 0, offset: $0.offset, metric: $0.element) }
        return pairs.sorted { ($0.time, $0.offset) < ($1.time, $1.offset) }.map(\.metric)
    }
}
