import CGattherdProfile
import GattherdGATT

/// The type-erased profile behind the table's `context`.
class AnyEncoder {
    func makeDecoder(for sender: AdvertisementSender?) -> AnyDecoder { AnyDecoder() }
    func encode(_ control: Int, _ value: ControlFormat.Value) throws(PayloadError) -> [UInt8] { [] }
}

/// The type-erased decoder behind a session pointer.
class AnyDecoder {
    func decode(_ stream: Int, _ payload: Span<UInt8>, into sink: SampleSink) throws(PayloadError) {}
}

final class ProfileEncoder<Profile: NativeProfile>: AnyEncoder {
    private let streams = Profile.characteristics.map(\.decode) + Profile.advertisements.map(\.decode)
    private let controls = Profile.controls

    override func makeDecoder(for sender: AdvertisementSender?) -> AnyDecoder {
        ProfileDecoder<Profile>(sender.map { Profile(sender: $0) } ?? Profile(), streams)
    }

    override func encode(_ control: Int, _ value: ControlFormat.Value) throws(PayloadError) -> [UInt8] {
        guard controls.indices.contains(control) else { throw .invalid(reason: "there is no control \(control)") }
        var writer = PayloadWriter()
        try controls[control].format.encode(value, &writer)
        return writer.octets
    }
}

final class ProfileDecoder<Profile: NativeProfile>: AnyDecoder {
    private var profile: Profile
    private let streams: [StreamDecoder<Profile>]

    init(_ profile: Profile, _ streams: [StreamDecoder<Profile>]) {
        self.profile = profile
        self.streams = streams
    }

    override func decode(_ index: Int, _ payload: Span<UInt8>, into sink: SampleSink) throws(PayloadError) {
        guard index >= 0, index < streams.count else { throw .invalid(reason: "there is no stream \(index)") }
        var cursor = PayloadCursor(payload)
        try streams[index](&profile, &cursor, sink)
    }
}

/// The functions of the C table.
enum TableFunctions {
    static func sessionCreate(
        _ context: UnsafeMutableRawPointer?,
        _ sender: UnsafePointer<gattherd_sender>?
    ) -> UnsafeMutableRawPointer? {
        guard let context = unsafe context else { return nil }
        let export = unsafe Unmanaged<AnyEncoder>.fromOpaque(context).takeUnretainedValue()
        let decoder = export.makeDecoder(for: unsafe sender.map { unsafe AdvertisementSender($0.pointee) })
        return unsafe Unmanaged.passRetained(decoder).toOpaque()
    }

    static func sessionDestroy(_ session: UnsafeMutableRawPointer?) {
        guard let session = unsafe session else { return }
        unsafe Unmanaged<AnyDecoder>.fromOpaque(session).release()
    }

    static func decode(
        _ session: UnsafeMutableRawPointer?,
        _ stream: UInt32,
        _ payload: UnsafePointer<UInt8>?,
        _ size: Int,
        _ sink: UnsafePointer<gattherd_sink>?
    ) -> Int32 {
        guard let raw = unsafe session, let sink = unsafe sink else { return GATTHERD_REJECT }
        let session = unsafe Unmanaged<AnyDecoder>.fromOpaque(raw).takeUnretainedValue()
        let octets = unsafe UnsafeBufferPointer(start: payload, count: unsafe payload == nil ? 0 : max(0, size))
        let samples = unsafe SampleSink(sink)
        do throws(PayloadError) {
            try unsafe session.decode(Int(stream), octets.span, into: samples)
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
            guard octets.count <= capacity else { throw .invalid(reason: "\(octets.count) bytes are too many") }
            for (index, octet) in octets.enumerated() { unsafe out[index] = octet }
            return Int32(octets.count)
        } catch {
            unsafe SampleSink(sink).fail(error.description)
            return GATTHERD_REJECT
        }
    }
}
