import CGattherdProfile
import GattherdGATT
import GattherdModel

/// A loaded native profile.
@safe struct LoadedProfile: Profile {
    /// The longest attribute value: Core Specification, Vol 3, Part F, "Attribute Value".
    private static let longestValue = 512

    let table: NativeTable
    let origin: String

    var name: String { table.name }
    var title: String { table.title }
    var isOptIn: Bool { unsafe table.raw.flags & GATTHERD_OPT_IN != 0 }
    var services: [BluetoothUUID] { table.services }
    var characteristics: [CharacteristicDescriptor] { table.characteristics }
    var controls: [ControlDescriptor] { table.controls }

    func makeSession() -> any ProfileSession { LoadedSession(table) }

    func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] {
        guard controls.indices.contains(control), let encode = unsafe table.raw.encode else {
            throw .noSuchControl("number \(control)")
        }
        let value = try controls[control].kind.accept(value)
        var native = gattherd_control_value(value, of: controls[control].kind)
        var answer = NativeResult(metricCount: 0)
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

/// The decoder of one connection in a native profile.
@safe final class LoadedSession: ProfileSession {
    private let table: NativeTable
    private let session: UnsafeMutableRawPointer?
    private let metricCounts: [Int]

    init(_ table: NativeTable) {
        self.table = table
        unsafe session = table.raw.session_create?(table.raw.context)
        metricCounts = table.characteristics.map(\.metrics.count)
    }

    deinit {
        if let session = unsafe session { unsafe table.raw.session_destroy?(session) }
    }

    func decode(
        _ payload: Span<UInt8>,
        characteristic: Int,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        guard metricCounts.indices.contains(characteristic), let decode = unsafe table.raw.decode else {
            throw .invalid(reason: "the profile has no characteristic \(characteristic)")
        }
        var answer = NativeResult(metricCount: metricCounts[characteristic])
        swap(&answer.samples, &samples)
        answer.room = answer.samples.count + NativeResult.mostSamples
        let status = unsafe payload.withUnsafeBufferPointer { octets in
            unsafe answer.withSink { sink in
                unsafe decode(session, UInt32(characteristic), octets.baseAddress, octets.count, sink)
            }
        }
        swap(&answer.samples, &samples)
        if let failure = answer.failure { throw .invalid(reason: failure) }
        guard status == GATTHERD_OK else { throw .invalid(reason: "the profile rejects it without a reason") }
    }
}
