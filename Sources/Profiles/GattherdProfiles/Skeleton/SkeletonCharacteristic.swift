package import GattherdGATT

/// A characteristic for a new profile, with its recorded values.
package struct SkeletonCharacteristic: Hashable, Sendable {
    package var service: BluetoothUUID
    package var uuid: BluetoothUUID
    package var isReadable = false
    package var notifies = false
    package var indicates = false
    package var isWritable = false
    /// True if it can only be written without response.
    package var isCommand = false
    /// The value of its User Description; `nil` if it has none.
    package var description: String?
    /// The values of its Presentation Formats, in order.
    package var formats: [[UInt8]] = []
    /// The recorded values, oldest first.
    package var values: [[UInt8]] = []
    /// Remarks, for example why there is no value; one line each.
    package var remarks: [String] = []

    package init(service: BluetoothUUID, uuid: BluetoothUUID) {
        self.service = service
        self.uuid = uuid
    }

    /// True if it has values to decode.
    var hasValues: Bool { isReadable || notifies || indicates }

    /// The properties in BlueZ's terms.
    var properties: String {
        let words = [
            (isReadable, "read"), (notifies, "notify"), (indicates, "indicate"),
            (isWritable && !isCommand, "write"), (isWritable && isCommand, "write-without-response"),
        ]
        return words.filter(\.0).map(\.1).joined(separator: ", ")
    }
}

/// A guessed field of an unknown value: by its Presentation Format, else by its bytes.
struct SkeletonField: Hashable {
    /// The type name in the declarative format.
    let type: String
    var scale: String?
    var unit: String?
    /// Another plausible reading of the bytes.
    var doubt: String?

    /// Returns one field per presentation format; a guess if no format is usable.
    static func fields(of characteristic: SkeletonCharacteristic) -> [SkeletonField] {
        let formats = characteristic.formats.compactMap { PresentationFormat($0) }
        let told = formats.compactMap { field($0) }
        let isWhole = told.count == characteristic.formats.count && !told.isEmpty
        let isOrdered = formats.dropLast().allSatisfy { $0.width != nil }
        return isWhole && isOrdered ? told : [guess(characteristic.values)]
    }

    private static func field(_ format: PresentationFormat) -> SkeletonField? {
        guard case .field(let type) = format.layout,
            let word = FieldType.words.first(where: { $0.value == type })?.word
        else { return nil }
        var field = SkeletonField(type: word, unit: format.unit)
        if format.exponent != 0 { field.scale = "1e\(format.exponent)" }
        return field
    }

    private static func guess(_ values: [[UInt8]]) -> SkeletonField {
        guard let first = values.first, values.allSatisfy({ $0.count == first.count || isText($0) }) else {
            return SkeletonField(type: "bytes", doubt: values.isEmpty ? nil : "The values have several lengths.")
        }
        if values.allSatisfy(isText) { return SkeletonField(type: "utf8") }
        switch first.count {
        case 1: return SkeletonField(type: "u8", doubt: "It may as well be i8, bool, flags or an enum.")
        case 2: return SkeletonField(type: "u16le", doubt: "It may as well be i16le, u16be, sfloat, or two fields.")
        case 4:
            return SkeletonField(
                type: "u32le",
                doubt: "It may as well be i32le, u32be, float, f32le, or several fields."
            )
        default: return SkeletonField(type: "bytes", doubt: "It is several fields, perhaps with flags in front.")
        }
    }

    private static func isText(_ octets: [UInt8]) -> Bool {
        octets.count >= 3 && octets.allSatisfy { (0x20..<0x7F).contains($0) }
    }
}
