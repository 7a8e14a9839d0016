import CGattherdProfile
import GattherdGATT
import GattherdModel

/// A loaded native profile.
@safe struct LoadedProfile: TestedProfile {
    /// The longest attribute value: Core Specification, Vol 3, Part F, "Attribute Value".
    private static let longestValue = 512

    let table: NativeTable
    let origin: String
    /// The models of the declarative profile that it replaces.
    var models: [ModelDescriptor] = []
    private let advertised = AdvertisedStreams()

    var name: String { table.name }
    var title: String { table.title }
    var isOptIn: Bool { unsafe isForAdvertisements || table.raw.flags & GATTHERD_OPT_IN != 0 }
    var services: [BluetoothUUID] { table.services }
    var characteristics: [CharacteristicDescriptor] { table.characteristics }
    var controls: [ControlDescriptor] { table.controls }
    var tasks: [ConnectionTaskDescriptor] { table.tasks }
    var advertisements: [AdvertisementDescriptor] { table.advertisements }
    var vectors: [[TestVector]] { table.vectors }

    func makeDecoder() -> any PayloadDecoder { LoadedDecoder(table) }
    func makeDecoder(for sender: Sender) -> any PayloadDecoder { LoadedDecoder(table, for: sender) }

    func stream(ofAdvertisement index: Int, from device: String) -> StreamDefinition {
        advertised.stream(index, of: self, from: device)
    }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        guard controls.indices.contains(control), let encode = unsafe table.raw.encode else {
            throw .noSuchControl("number \(control)")
        }
        let value = try controls[control].kind.accept(value)
        var native = gattherd_control_value(value, of: controls[control].kind)
        var answer = NativeResult(metrics: [])
        var octets = [UInt8](repeating: 0, count: Self.longestValue)
        let length = unsafe octets.withUnsafeMutableBufferPointer { out in
            unsafe answer.withSink { sink in
                unsafe encode(
                    table.raw.context,
                    UInt32(control),
                    &native,
                    out.baseAddress,
                    out.count,
                    sink
                )
            }
        }
        guard answer.failure == nil, (0...octets.count).contains(Int(length)) else {
            let reason = answer.failure ?? "the profile gave no reason"
            throw .invalidValue(value.description, expected: reason)
        }
        return Array(octets.prefix(Int(length)))
    }
}

extension gattherd_control_value {
    /// Converts a checked value to the C type.
    fileprivate init(_ value: ControlValue, of kind: ControlKind) {
        self.init()
        struct_size = UInt32(MemoryLayout<gattherd_control_value>.size)
        switch (kind, value) {
        case (.integer, .integer(let number)):
            (self.kind, integer) = (GATTHERD_CONTROL_INTEGER, number)
        case (.real, .real(let number)):
            (self.kind, real) = (GATTHERD_CONTROL_REAL, number)
        case (.boolean, .boolean(let flag)):
            (self.kind, integer) = (GATTHERD_CONTROL_BOOLEAN, flag ? 1 : 0)
        case (.choice(let labels), .text(let label)):
            (self.kind, integer) = (GATTHERD_CONTROL_CHOICE, Int64(labels.firstIndex(of: label) ?? 0))
        default:
            self.kind = GATTHERD_CONTROL_TRIGGER
        }
    }
}

/// The decoder of one connection, or of one advertising device, in a native profile.
@safe final class LoadedDecoder: PayloadDecoder {
    private let table: NativeTable
    private let session: UnsafeMutableRawPointer?
    private let metrics: [[MetricDescriptor]]
    /// The counters of the advertisements; empty for a connection.
    private var counters: [ReplayGuard]

    init(_ table: NativeTable, for sender: Sender? = nil) {
        let sender = sender?.forNativeProfiles
        self.table = table
        unsafe session = Self.create(table.raw, sender)
        metrics = table.characteristics.map(\.metrics) + table.advertisements.map(\.metrics)
        counters = table.advertisements.map { ReplayGuard(sender, profile: table.name, stream: $0.stream) }
    }

    deinit {
        if let session = unsafe session { unsafe table.raw.session_destroy?(session) }
    }

    private static func create(_ table: gattherd_profile, _ sender: Sender?) -> UnsafeMutableRawPointer? {
        guard let create = unsafe table.session_create else { return nil }
        guard unsafe table.advertisement_count > 0, let sender else { return unsafe create(table.context, nil) }
        let key = sender.key?.octets ?? []
        return unsafe key.withUnsafeBufferPointer { key in
            var native = unsafe gattherd_sender(sender, key: key)
            return unsafe create(table.context, &native)
        }
    }

    var replayMarks: [ReplayCounter] { counters.compactMap(\.mark) }

    func resume(from marks: [String: UInt32]) {
        for index in counters.indices { counters[index].resume(from: marks) }
    }

    func decode(
        _ payload: Span<UInt8>,
        characteristic stream: Int,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        guard metrics.indices.contains(stream), let decode = unsafe table.raw.decode else {
            throw .invalid(reason: "the profile has no stream \(stream)")
        }
        let start = samples.count
        var answer = NativeResult(metrics: metrics[stream])
        swap(&answer.samples, &samples)
        answer.room = start + NativeResult.maximumSamples
        let status = unsafe payload.withUnsafeBufferPointer { octets in
            unsafe answer.withSink { sink in
                unsafe decode(session, UInt32(stream), octets.baseAddress, octets.count, sink)
            }
        }
        swap(&answer.samples, &samples)
        if let failure = answer.failure { throw .invalid(reason: failure) }
        guard status == GATTHERD_OK else { throw .invalid(reason: "the profile rejects it without a reason") }
        guard let counter = answer.counter, counters.indices.contains(stream) else { return }
        if try !counters[stream].admit(counter) { samples.removeSubrange(start...) }
    }
}

extension Sender {
    /// The sender without a key of 12 bytes: the contract of native profiles promises 16 bytes or none.
    fileprivate var forNativeProfiles: Sender {
        Sender(address: address, key: key.flatMap { $0.isComplete ? $0 : nil })
    }
}

extension gattherd_sender {
    /// Converts a sender to the C type, which is valid as long as `key`.
    fileprivate init(_ sender: Sender, key: UnsafeBufferPointer<UInt8>) {
        unsafe self.init()
        unsafe struct_size = UInt32(MemoryLayout<gattherd_sender>.size)
        unsafe key_size = UInt32(key.count)
        unsafe self.key = key.isEmpty ? nil : key.baseAddress
        let octet = { (shift: UInt64) in UInt8(truncatingIfNeeded: sender.address.value >> shift) }
        unsafe address = (octet(40), octet(32), octet(24), octet(16), octet(8), octet(0))
    }
}
