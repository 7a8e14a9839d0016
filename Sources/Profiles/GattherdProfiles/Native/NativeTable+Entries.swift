import CGattherdProfile
import GattherdGATT
import GattherdModel

extension CharacteristicDescriptor {
    /// Reads one entry of a native table; `what` names it in errors.
    init(_ raw: UnsafePointer<gattherd_characteristic>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_characteristic>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_characteristic(), least: least, what)
        let stream = try unsafe TableReader.identifier(entry.stream, "the stream of \(what)")
        guard !ProfileRules.reservedStreams.contains(stream) else {
            throw TableFault("stream '\(stream)' has a reserved name")
        }
        let metrics = try unsafe TableReader.array(
            entry.metrics,
            count: entry.metric_count,
            limit: 1...64,
            "metrics of stream '\(stream)'"
        ) { (metric, what) throws(TableFault) in try unsafe MetricDescriptor(metric, what) }
        if let twice = metrics.map(\.name).firstDuplicate {
            throw TableFault("stream '\(stream)' has two metrics '\(twice)'")
        }
        self.init(
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
            wrapBits: unsafe entry.wrap_bits == 0 ? nil : Int(entry.wrap_bits)
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

extension ControlDescriptor {
    /// Reads one entry of a native table; `what` names it in errors.
    init(_ raw: UnsafePointer<gattherd_control>, _ what: String) throws(TableFault) {
        let least = unsafe MemoryLayout<gattherd_control>.size
        let entry = try unsafe TableReader.structure(raw, gattherd_control(), least: least, what)
        let name = try unsafe TableReader.identifier(entry.name, "the name of \(what)")
        self.init(
            name: name,
            kind: try unsafe ControlKind(entry, name),
            service: try unsafe TableReader.optionalUUID(entry.service, "the service of control '\(name)'"),
            characteristic: try unsafe TableReader.uuid(entry.uuid, "the UUID of control '\(name)'"),
            unit: try unsafe TableReader.optionalText(entry.unit, "the unit of control '\(name)'"),
            isAcknowledged: unsafe entry.flags & GATTHERD_WRITE_WITHOUT_RESPONSE == 0,
            throttle: try unsafe TableReader.duration(entry.throttle_milliseconds, "the throttle of control '\(name)'"),
            echo: try unsafe TableReader.optionalText(entry.echo, "the echo of control '\(name)'")
        )
    }
}

extension ControlKind {
    fileprivate init(_ entry: gattherd_control, _ name: String) throws(TableFault) {
        switch unsafe entry.kind {
        case GATTHERD_CONTROL_INTEGER:
            let (low, high) = unsafe (entry.integer_min, entry.integer_max)
            guard low <= high else { throw TableFault("the range of control '\(name)' is empty") }
            self = .integer(low...high)
        case GATTHERD_CONTROL_REAL:
            let (low, high) = unsafe (entry.real_min, entry.real_max)
            guard low.isFinite, high.isFinite, low <= high else {
                throw TableFault("the range of control '\(name)' is empty or not finite")
            }
            self = .real(low...high)
        case GATTHERD_CONTROL_BOOLEAN: self = .boolean
        case GATTHERD_CONTROL_CHOICE: self = .choice(try unsafe Self.labels(entry, name))
        case GATTHERD_CONTROL_TRIGGER: self = .trigger
        case let other: throw TableFault("control '\(name)' has the unknown kind \(other)")
        }
    }

    private static func labels(_ entry: gattherd_control, _ name: String) throws(TableFault) -> [String] {
        let labels = try unsafe TableReader.array(
            entry.labels,
            count: entry.label_count,
            limit: 1...256,
            "labels of control '\(name)'"
        ) { (text, what) throws(TableFault) in try unsafe TableReader.text(text, what) }
        if let twice = labels.firstDuplicate { throw TableFault("control '\(name)' has two labels '\(twice)'") }
        return labels
    }
}
