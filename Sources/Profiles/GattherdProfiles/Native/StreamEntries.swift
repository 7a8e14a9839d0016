import CGattherdProfile
import GattherdGATT
import GattherdModel

/// A stream of a native table, and its tests.
struct TableStream<Descriptor> {
    let descriptor: Descriptor
    let vectors: [TestVector]

    /// Reads the name of a stream.
    private static func name(_ raw: UnsafePointer<CChar>?, _ what: String) throws(TableFault) -> String {
        let name = try unsafe TableReader.identifier(raw, "the stream of \(what)")
        guard !ProfileRules.reservedStreams.contains(name) else {
            throw TableFault("stream '\(name)' has a reserved name")
        }
        return name
    }

    private static func metrics(
        _ raw: UnsafePointer<UnsafePointer<gattherd_metric>?>?,
        _ count: UInt32,
        _ stream: String
    ) throws(TableFault) -> [MetricDescriptor] {
        let what = "metrics of stream '\(stream)'"
        let metrics = try unsafe TableReader.array(raw, count: count, limit: 1...64, what) {
            (metric, what) throws(TableFault) in try unsafe MetricDescriptor(metric, what)
        }
        if let twice = metrics.map(\.name).firstDuplicate {
            throw TableFault("stream '\(stream)' has two metrics '\(twice)'")
        }
        return metrics
    }

    private static func vectors(
        _ raw: UnsafePointer<UnsafePointer<CChar>?>?,
        _ count: UInt32,
        _ stream: String,
        _ reader: VectorReader
    ) throws(TableFault) -> [TestVector] {
        let what = "tests of stream '\(stream)'"
        let texts = try unsafe TableReader.array(raw, count: count, limit: 0...64, what) {
            (text, what) throws(TableFault) in
            try unsafe TableReader.text(text, what, limit: TableReader.longestTest)
        }
        var vectors: [TestVector] = []
        for (index, text) in texts.enumerated() {
            do throws(VectorReader.Fault) {
                vectors.append(try reader.read(text, number: index + 1))
            } catch {
                throw TableFault("test \(index + 1) of stream '\(stream)': \(error.reason)")
            }
        }
        return vectors
    }
}

extension TableStream<CharacteristicDescriptor> {
    /// Reads one entry of a native table; `what` names it in errors.
    init(_ raw: UnsafePointer<gattherd_characteristic>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_characteristic>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_characteristic(), least: least, what)
        let stream = try unsafe Self.name(entry.stream, what)
        let metrics = try unsafe Self.metrics(entry.metrics, entry.metric_count, stream)
        descriptor = CharacteristicDescriptor(
            service: try unsafe TableReader.optionalUUID(entry.service, "the service of stream '\(stream)'"),
            uuid: try unsafe TableReader.uuid(entry.uuid, "the UUID of stream '\(stream)'"),
            stream: stream,
            metrics: metrics,
            subscription: try unsafe SubscriptionMode(entry, stream),
            isReadAtConnect: unsafe entry.flags & GATTHERD_READ_AT_CONNECT != 0,
            isRequired: unsafe entry.flags & GATTHERD_REQUIRED != 0,
            prefersSocket: unsafe entry.flags & GATTHERD_PREFERS_SOCKET != 0,
            silence: try unsafe TableReader.duration(entry.silence_milliseconds, "the silence of stream '\(stream)'"),
            pollInstead: try unsafe SubscriptionMode.pause(entry.poll_instead_milliseconds, stream)
        )
        let reader = VectorReader(metrics: metrics)
        vectors = try unsafe Self.vectors(entry.tests, entry.test_count, stream, reader)
    }
}

extension TableStream<AdvertisementDescriptor> {
    /// Reads one entry of a native table; `what` names it in errors.
    init(_ raw: UnsafePointer<gattherd_advertisement>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_advertisement>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_advertisement(), least: least, what)
        let stream = try unsafe Self.name(entry.stream, what)
        let metrics = try unsafe Self.metrics(entry.metrics, entry.metric_count, stream)
        var frame = AdvertisementDescriptor(
            source: try unsafe SourcePattern(entry, stream),
            stream: stream,
            metrics: metrics
        )
        let name = try unsafe TableReader.optionalText(entry.name, "the name of stream '\(stream)'")
        frame.names = name.map { [NamePattern($0)] } ?? []
        frame.beginning = try unsafe TableReader.optionalPattern(entry.begins, "the beginning of stream '\(stream)'")
        frame.length = try unsafe Self.length(entry.size_min, entry.size_max, stream)
        if let silence = try unsafe Self.duration(entry.silence_milliseconds, "the silence of stream '\(stream)'") {
            frame.silence = silence
        }
        if let renewal = try unsafe Self.duration(entry.renewal_milliseconds, "the renewal of stream '\(stream)'") {
            frame.renewal = renewal
        }
        frame.isCounted = unsafe entry.flags & GATTHERD_COUNTED != 0
        frame.isOpen = unsafe entry.flags & GATTHERD_OPEN != 0
        descriptor = frame
        let reader = VectorReader(metrics: metrics, isKeyed: true, keys: .completeBindKey)
        vectors = try unsafe Self.vectors(entry.tests, entry.test_count, stream, reader)
    }

    private static func length(
        _ least: UInt32,
        _ most: UInt32,
        _ stream: String
    ) throws(TableFault) -> ClosedRange<Int>? {
        guard least > 0 || most > 0 else { return nil }
        guard most > 0 else { return Int(least)...Int.max }
        guard least <= most else { throw TableFault("the length of stream '\(stream)' is an empty range") }
        return Int(least)...Int(most)
    }

    private static func duration(_ milliseconds: UInt64, _ what: String) throws(TableFault) -> Duration? {
        guard let duration = try TableReader.duration(milliseconds, what) else { return nil }
        guard duration >= .seconds(1) else { throw TableFault("\(what) of \(milliseconds) ms is less than 1 second") }
        return duration
    }
}

extension SourcePattern {
    fileprivate init(_ entry: gattherd_advertisement, _ stream: String) throws(TableFault) {
        switch unsafe entry.source {
        case GATTHERD_MANUFACTURER_DATA:
            guard let company = unsafe UInt16(exactly: entry.company) else {
                throw TableFault("stream '\(stream)' has the impossible company \(unsafe entry.company)")
            }
            self = .manufacturer(company)
        case GATTHERD_SERVICE_DATA:
            self = .serviceData(try unsafe TableReader.uuid(entry.uuid, "the UUID of stream '\(stream)'"))
        case let other: throw TableFault("stream '\(stream)' has the unknown source \(other)")
        }
    }
}

extension SubscriptionMode {
    fileprivate init(_ entry: gattherd_characteristic, _ stream: String) throws(TableFault) {
        switch unsafe entry.subscription {
        case GATTHERD_SUBSCRIBE_NONE: self = .none
        case GATTHERD_SUBSCRIBE_NOTIFY: self = .notify
        case GATTHERD_SUBSCRIBE_INDICATE: self = .indicate
        case GATTHERD_SUBSCRIBE_POLL:
            guard let pause = try unsafe Self.pause(entry.poll_milliseconds, stream) else {
                throw TableFault("stream '\(stream)' has an invalid polling period: use 100 ms to a day")
            }
            self = .poll(every: pause)
        case let other: throw TableFault("stream '\(stream)' has the unknown subscription \(other)")
        }
    }

    /// Reads a polling period; `nil` for 0.
    fileprivate static func pause(_ milliseconds: UInt64, _ stream: String) throws(TableFault) -> Duration? {
        let pause = try TableReader.duration(milliseconds, "the pause of stream '\(stream)'")
        guard let pause else { return nil }
        guard ProfileRules.pollRange.contains(pause) else {
            throw TableFault("stream '\(stream)' has an invalid polling period: use 100 ms to a day")
        }
        return pause
    }
}

extension MetricDescriptor {
    fileprivate init(_ raw: UnsafePointer<gattherd_metric>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_metric>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_metric(), least: least, what)
        let name = try unsafe TableReader.identifier(entry.name, "the name of \(what)")
        guard unsafe entry.wrap_bits <= 64 else {
            throw TableFault("metric '\(name)' has wrap_bits of \(unsafe entry.wrap_bits); the maximum is 64")
        }
        guard !ProfileRules.reservedMetrics.contains(name) else {
            throw TableFault("metric '\(name)' has a reserved name")
        }
        self.init(
            name: name,
            unit: try unsafe TableReader.optionalText(entry.unit, "the unit of metric '\(name)'"),
            kind: try MetricKind(native: unsafe entry.kind, name),
            isRepeated: unsafe entry.flags & GATTHERD_METRIC_REPEATED != 0,
            wrapBits: unsafe entry.wrap_bits == 0 ? nil : Int(entry.wrap_bits),
            domain: unsafe entry.flags & GATTHERD_METRIC_BOOLEAN != 0 ? .boolean : .open
        )
    }
}

extension MetricKind {
    fileprivate init(native kind: UInt32, _ metric: String) throws(TableFault) {
        switch kind {
        case GATTHERD_METRIC_GAUGE: self = .gauge
        case GATTHERD_METRIC_COUNTER: self = .counter
        case GATTHERD_METRIC_STATE: self = .state
        case GATTHERD_METRIC_EVENT: self = .event
        default: throw TableFault("metric '\(metric)' has the unknown kind \(kind)")
        }
    }
}
