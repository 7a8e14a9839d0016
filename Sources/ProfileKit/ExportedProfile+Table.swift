import CGattherdProfile
import GattherdGATT

extension Duration {
    /// Whole milliseconds, at least 0.
    fileprivate var milliseconds: UInt64 { UInt64(exactly: (self / .milliseconds(1)).rounded()) ?? 0 }
}

extension Metric {
    func permanent() -> UnsafePointer<gattherd_metric>? {
        unsafe Permanent.value(
            gattherd_metric(
                struct_size: UInt32(MemoryLayout<gattherd_metric>.size),
                kind: kind.rawValue,
                flags: isRepeated ? GATTHERD_METRIC_REPEATED : 0,
                reserved: 0,
                name: Permanent.text(name),
                unit: Permanent.text(unit)
            )
        )
    }
}

extension Characteristic {
    func permanent() -> UnsafePointer<gattherd_characteristic>? {
        let metrics = unsafe metrics.map { unsafe $0.permanent() }
        return unsafe Permanent.value(
            gattherd_characteristic(
                struct_size: UInt32(MemoryLayout<gattherd_characteristic>.size),
                subscription: subscription.number,
                flags: options.rawValue,
                metric_count: UInt32(metrics.count),
                uuid: Permanent.text(uuid.canonical),
                service: Permanent.text(service?.canonical),
                stream: Permanent.text(stream),
                metrics: Permanent.array(metrics),
                poll_milliseconds: subscription.pause?.milliseconds ?? 0,
                silence_milliseconds: silence?.milliseconds ?? 0
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
    func permanent() -> UnsafePointer<gattherd_control>? {
        var raw = unsafe gattherd_control()
        unsafe raw.struct_size = UInt32(MemoryLayout<gattherd_control>.size)
        unsafe raw.flags = isAcknowledged ? 0 : GATTHERD_WRITE_WITHOUT_RESPONSE
        unsafe raw.name = Permanent.text(name)
        unsafe raw.uuid = Permanent.text(characteristic.canonical)
        unsafe raw.service = Permanent.text(service?.canonical)
        unsafe raw.unit = Permanent.text(unit)
        unsafe raw.echo = Permanent.text(echo)
        unsafe raw.throttle_milliseconds = throttle?.milliseconds ?? 0
        unsafe format.kind.fill(&raw)
        return unsafe Permanent.value(raw)
    }
}

extension ControlFormat.Kind {
    fileprivate func fill(_ raw: inout gattherd_control) {
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
            let labels = unsafe labels.map { unsafe Permanent.text($0) as UnsafePointer<CChar>? }
            unsafe raw.kind = GATTHERD_CONTROL_CHOICE
            unsafe raw.label_count = UInt32(labels.count)
            unsafe raw.labels = Permanent.array(labels)
        case .trigger:
            unsafe raw.kind = GATTHERD_CONTROL_TRIGGER
        }
    }
}
