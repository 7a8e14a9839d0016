import CGattherdProfile
public import GattherdGATT

/// Receives the samples of one payload without allocating memory.
public struct Samples<Metrics: MetricSet>: ~Escapable {
    private let sink: SampleSink

    @_lifetime(copy sink)
    init(_ sink: SampleSink) {
        self.sink = sink
    }

    /// Emits an integer; numbers beyond `Int64` become the nearest `Double`.
    public func emit(_ metric: Metrics, _ value: some BinaryInteger) {
        guard let integer = Int64(exactly: value) else { return emit(metric, Double(value)) }
        sink.integer(metric.rawValue, integer)
    }

    /// Emits a number; NaN and infinities become unknown.
    public func emit(_ metric: Metrics, _ value: Double) {
        sink.real(metric.rawValue, value)
    }

    /// Emits an IEEE 11073 number; special values become unknown.
    public func emit(_ metric: Metrics, _ value: IEEE11073Number) {
        guard let number = value.value else { return emitUnknown(metric) }
        emit(metric, number)
    }

    public func emit(_ metric: Metrics, _ value: Bool) {
        sink.boolean(metric.rawValue, value)
    }

    /// Emits a label or a text.
    public func emit(_ metric: Metrics, _ value: String) {
        sink.text(metric.rawValue, value)
    }

    /// Emits an unknown value.
    public func emitUnknown(_ metric: Metrics) {
        sink.null(metric.rawValue)
    }

    /// Reports the number of an advertisement with ``AdvertisementOptions/counted``.
    ///
    /// The same number as before is the same reading, which is not stored again. If the sender has a key, report the
    /// number of authentic payloads only: lower numbers are then rejected as replays.
    public func emitCounter(_ number: UInt32) {
        sink.counter(number)
    }
}

/// The host's callbacks during one call.
@safe struct SampleSink: ~Escapable {
    private let raw: UnsafePointer<gattherd_sink>

    /// - Parameter raw: The host's sink; the caller ensures that this value does not outlive the host's call.
    @_lifetime(immortal)
    @unsafe init(_ raw: UnsafePointer<gattherd_sink>) {
        unsafe self.raw = raw
    }

    func integer(_ metric: Int, _ value: Int64) {
        unsafe raw.pointee.integer?(raw.pointee.context, UInt32(truncatingIfNeeded: metric), value)
    }

    func real(_ metric: Int, _ value: Double) {
        unsafe raw.pointee.real?(raw.pointee.context, UInt32(truncatingIfNeeded: metric), value)
    }

    func boolean(_ metric: Int, _ value: Bool) {
        unsafe raw.pointee.boolean?(raw.pointee.context, UInt32(truncatingIfNeeded: metric), value ? 1 : 0)
    }

    func text(_ metric: Int, _ value: String) {
        var value = value
        value.withUTF8 { utf8 in
            unsafe utf8.withMemoryRebound(to: CChar.self) { text in
                let metric = UInt32(truncatingIfNeeded: metric)
                unsafe raw.pointee.text?(raw.pointee.context, metric, text.baseAddress, text.count)
            }
        }
    }

    func null(_ metric: Int) {
        unsafe raw.pointee.null?(raw.pointee.context, UInt32(truncatingIfNeeded: metric))
    }

    func counter(_ number: UInt32) {
        unsafe raw.pointee.counter?(raw.pointee.context, number)
    }

    func fail(_ reason: String) {
        var reason = reason
        reason.withUTF8 { utf8 in
            unsafe utf8.withMemoryRebound(to: CChar.self) { text in
                unsafe raw.pointee.fail?(raw.pointee.context, text.baseAddress, text.count)
            }
        }
    }
}
