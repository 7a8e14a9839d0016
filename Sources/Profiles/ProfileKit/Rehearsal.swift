import CGattherdProfile
public import GattherdGATT

/// One connection as gattherd would drive it, through the C table, for a profile's own tests.
@safe public final class Rehearsal {
    /// What a sample said.
    public enum Value: Hashable, Sendable {
        case integer(Int64)
        case real(Double)
        case boolean(Bool)
        case text(String)
        case unknown
    }

    /// One value of one metric.
    public struct Sample: Hashable, Sendable {
        public let metric: String
        public let value: Value

        public init(_ metric: String, _ value: Value) {
            self.metric = metric
            self.value = value
        }
    }

    private let exported: ExportedProfile
    private let streams: [(name: String, metrics: [Metric])]
    private let controls: [String]
    private let session: UnsafeMutableRawPointer?

    /// Begins a connection.
    public init<Profile: NativeProfile>(_ type: Profile.Type) {
        streams = Profile.characteristics.map { ($0.stream, $0.metrics) }
        controls = Profile.controls.map(\.name)
        exported = ExportedProfile(type)
        let raw = unsafe exported.raw
        unsafe session = raw.pointee.session_create?(raw.pointee.context)
    }

    deinit {
        unsafe exported.raw.pointee.session_destroy?(session)
    }

    /// Decodes one payload of `stream`.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` with the reason of the reject.
    public func decode(_ payload: [UInt8], stream: String) throws(PayloadError) -> [Sample] {
        guard let index = streams.firstIndex(where: { $0.name == stream }) else {
            throw .invalid(reason: "the profile has no stream '\(stream)'")
        }
        let record = RecordingSink(streams[index].metrics)
        let status = unsafe record.withSink { sink in
            unsafe payload.withUnsafeBufferPointer { payload in
                unsafe exported.raw.pointee.decode(session, UInt32(index), payload.baseAddress, payload.count, sink)
            }
        }
        guard status == GATTHERD_OK else { throw .invalid(reason: record.reason) }
        return record.samples
    }

    /// Encodes a value for `control`; the number, 0 or 1, or the position of the label.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` with the profile's reason.
    public func encode(_ integer: Int64 = 0, real: Double = 0, control: String) throws(PayloadError) -> [UInt8] {
        guard let index = controls.firstIndex(of: control) else {
            throw .invalid(reason: "the profile has no control '\(control)'")
        }
        let record = RecordingSink([])
        var octets = [UInt8](repeating: 0, count: 512)
        var value = gattherd_control_value()
        value.integer = integer
        value.real = real
        let length = unsafe record.withSink { sink in
            unsafe octets.withUnsafeMutableBufferPointer { out in
                unsafe exported.raw.pointee.encode(
                    exported.raw.pointee.context,
                    UInt32(index),
                    &value,
                    out.baseAddress,
                    out.count,
                    sink
                )
            }
        }
        guard length >= 0 else { throw .invalid(reason: record.reason) }
        return Array(octets.prefix(Int(length)))
    }
}
