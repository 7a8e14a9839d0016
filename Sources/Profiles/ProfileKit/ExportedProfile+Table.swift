import CGattherdProfile
import GattherdGATT

extension Duration {
    /// Whole milliseconds, at least 0.
    fileprivate var milliseconds: UInt64 { UInt64(exactly: (self / .milliseconds(1)).rounded()) ?? 0 }
}

extension Metric {
    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_metric>? {
        unsafe memory.value(
            gattherd_metric(
                struct_size: UInt32(MemoryLayout<gattherd_metric>.size),
                kind: kind.rawValue,
                flags: isRepeated ? GATTHERD_METRIC_REPEATED : 0,
                reserved: 0,
                name: memory.text(name),
                unit: memory.text(unit),
                wrap_bits: UInt32(clamping: wraps ?? 0),
                reserved_1: 0
            )
        )
    }
}

extension ProfileCharacteristic {
    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_characteristic>? {
        let metrics = unsafe metrics.map { unsafe $0.table(in: &memory) }
        return unsafe memory.value(
            gattherd_characteristic(
                struct_size: UInt32(MemoryLayout<gattherd_characteristic>.size),
                subscription: subscription.number,
                flags: options.rawValue,
                metric_count: UInt32(metrics.count),
                uuid: memory.text(uuid.canonical),
                service: memory.text(service?.canonical),
                stream: memory.text(stream),
                metrics: memory.array(metrics),
                poll_milliseconds: subscription.pause?.milliseconds ?? 0,
                silence_milliseconds: silence?.milliseconds ?? 0,
                poll_instead_milliseconds: pollInstead?.milliseconds ?? 0
            )
        )
    }
}

extension Subscription {
    fileprivate var number: UInt32 {
        switch self {
        case .none: GATTHERD_SUBSCRIBE_NONE
        case .notify: GATTHERD_SUBSCRIBE_NOTIFY
        case .indicate: GATTHERD_SUBSCRIBE_INDICATE
        case .poll: GATTHERD_SUBSCRIBE_POLL
        }
    }

    fileprivate var pause: Duration? {
        guard case .poll(let pause) = self else { return nil }
        return pause
    }
}

extension Control {
    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_control>? {
        var raw = unsafe gattherd_control()
        unsafe raw.struct_size = UInt32(MemoryLayout<gattherd_control>.size)
        unsafe raw.flags = isAcknowledged ? 0 : GATTHERD_WRITE_WITHOUT_RESPONSE
        unsafe raw.name = memory.text(name)
        unsafe raw.uuid = memory.text(characteristic.canonical)
        unsafe raw.service = memory.text(service?.canonical)
        unsafe raw.unit = memory.text(unit)
        unsafe raw.echo = memory.text(echo)
        unsafe raw.throttle_milliseconds = throttle?.milliseconds ?? 0
        unsafe format.kind.fill(&raw, in: &memory)
        return unsafe memory.value(raw)
    }
}

extension ControlFormat.Kind {
    fileprivate func fill(_ raw: inout gattherd_control, in memory: inout TableMemory) {
        switch self {
        case .integer(let range):
            unsafe raw.kind = GATTHERD_CONTROL_INTEGER
            unsafe raw.integer_min = range.lowerBound
            unsafe raw.integer_max = range.upperBound
        case .real(let range):
            unsafe raw.kind = GATTHERD_CONTROL_REAL
            unsafe raw.real_min = range.lowerBound
            unsafe raw.real_max = range.upperBound
        case .boolean:
            unsafe raw.kind = GATTHERD_CONTROL_BOOLEAN
        case .choice(let labels):
            let labels = unsafe labels.map { unsafe memory.text($0) }
            unsafe raw.kind = GATTHERD_CONTROL_CHOICE
            unsafe raw.label_count = UInt32(labels.count)
            unsafe raw.labels = memory.array(labels)
        case .trigger:
            unsafe raw.kind = GATTHERD_CONTROL_TRIGGER
        }
    }
}
