import CGattherdProfile
import GattherdGATT

/// The type-erased profile behind the table's `context`.
class AnyEncoder {
    func makeDecoder() -> AnyDecoder { AnyDecoder() }
    func encode(_ control: Int, _ value: ControlFormat.Value) throws(PayloadError) -> [UInt8] { [] }
}

/// The type-erased decoder behind a session pointer.
class AnyDecoder {
    func decode(_ characteristic: Int, _ payload: Span<UInt8>, into sink: SampleSink) throws(PayloadError) {}
}

final class ProfileEncoder<Profile: NativeProfile>: AnyEncoder {
    private let characteristics = Profile.characteristics
    private let controls = Profile.controls

    override func makeDecoder() -> AnyDecoder {
        ProfileDecoder<Profile>(characteristics)
    }

    override func encode(_ control: Int, _ value: ControlFormat.Value) throws(PayloadError) -> [UInt8] {
        guard controls.indices.contains(control) else { throw .invalid(reason: "there is no control \(control)") }
        var writer = PayloadWriter()
        try controls[control].format.encode(value, &writer)
        return writer.octets
    }
}

final class ProfileDecoder<Profile: NativeProfile>: AnyDecoder {
    private var profile = Profile()
    private let characteristics: [ProfileCharacteristic<Profile>]

    init(_ characteristics: [ProfileCharacteristic<Profile>]) {
        self.characteristics = characteristics
    }

    override func decode(_ index: Int, _ payload: Span<UInt8>, into sink: SampleSink) throws(PayloadError) {
        guard characteristics.indices.contains(index) else {
            throw .invalid(reason: "there is no characteristic \(index)")
        }
        var cursor = PayloadCursor(payload)
        try characteristics[index].decode(&profile, &cursor, sink)
    }
}

/// The functions of the C table.
enum TableFunctions {
    static func sessionCreate(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let context = unsafe context else { return nil }
        let export = unsafe Unmanaged<AnyEncoder>.fromOpaque(context).takeUnretainedValue()
        return unsafe Unmanaged.passRetained(export.makeDecoder()).toOpaque()
    }

    static func sessionDestroy(_ session: UnsafeMutableRawPointer?) {
        guard let session = unsafe session else { return }
        unsafe Unmanaged<AnyDecoder>.fromOpaque(session).release()
    }

    static func decode(
        _ session: UnsafeMutableRawPointer?,
        _ characteristic: UInt32,
        _ payload: UnsafePointer<UInt8>?,
        _ size: Int,
        _ sink: UnsafePointer<gattherd_sink>?
    ) -> Int32 {
        guard let raw = unsafe session, let sink = unsafe sink else { return GATTHERD_REJECT }
        let session = unsafe Unmanaged<AnyDecoder>.fromOpaque(raw).takeUnretainedValue()
        let octets = unsafe UnsafeBufferPointer(start: payload, count: unsafe payload == nil ? 0 : max(0, size))
        let samples = unsafe SampleSink(sink)
        do throws(PayloadError) {
            try unsafe session.decode(Int(characteristic), octets.span, into: samples)
            return GATTHERD_OK
        } catch {
            samples.fail(error.description)
            return GATTHERD_REJECT
        }
    }

    static func encode(
        _ context: UnsafeMutableRawPointer?,
        _ control: UInt32,
        _ value: UnsafePointer<gattherd_control_value>?,
        _ out: UnsafeMutablePointer<UInt8>?,
        _ capacity: Int,
        _ sink: UnsafePointer<gattherd_sink>?
    ) -> Int32 {
        guard let context = unsafe context, let value = unsafe value, let out = unsafe out, let sink = unsafe sink
        else { return GATTHERD_REJECT }
        let export = unsafe Unmanaged<AnyEncoder>.fromOpaque(context).takeUnretainedValue()
        do throws(PayloadError) {
            let octets = try unsafe export.encode(
                Int(control),
                ControlFormat.Value(integer: value.pointee.integer, real: value.pointee.real)
            )
            guard octets.count <= capacity else { throw .invalid(reason: "\(octets.count) octets are too many") }
            for (index, octet) in octets.enumerated() { unsafe out[index] = octet }
            return Int32(octets.count)
        } catch {
            unsafe SampleSink(sink).fail(error.description)
            return GATTHERD_REJECT
        }
    }
}
