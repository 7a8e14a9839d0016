import GattherdGATT

/// A Characteristic Presentation Format descriptor: the type and the unit of a value.
///
/// Core Specification, Vol 3, Part G, "Characteristic Presentation Format".
struct PresentationFormat: Hashable, Sendable {
    /// The layout of the bytes.
    enum Layout: Hashable, Sendable {
        case field(FieldType)
        /// The lowest bits of a field that is read as an unsigned number.
        case bits(Int64, of: FieldType, isSigned: Bool)
    }

    let layout: Layout
    /// The decimal exponent: the value is raw × 10^exponent.
    ///
    /// 0 for formats without exponent.
    let exponent: Int
    /// The unit's symbol; `nil` for none.
    let unit: String?
    /// The namespace description, such as `main`; `nil` if there is none.
    let place: String?
    /// Problems with the descriptor.
    let remarks: [String]

    /// Parses a descriptor; `nil` if it is too short or names an unknown format.
    init?(_ octets: [UInt8]) {
        var cursor = PayloadCursor(octets.span)
        guard octets.count == 7, let code = try? cursor.u8(), let layout = Self.layouts[code],
            let exponent = try? cursor.i8(), let unit = try? cursor.u16(), let namespace = try? cursor.u8(),
            let description = try? cursor.u16()
        else { return nil }
        var remarks: [String] = []
        self.layout = layout
        self.exponent = Self.exponent(Int(exponent), layout, &remarks)
        self.unit = Self.unit(unit, &remarks)
        place = namespace == 1 ? Self.place(description) : nil
        self.remarks = remarks
    }

    /// The width of the value in bytes; `nil` for the rest of the payload.
    var width: Int? {
        switch layout {
        case .field(let type), .bits(_, let type, _): type.width
        }
    }

    // MARK: - Tables

    private static let layouts: [UInt8: Layout] = {
        func whole(_ octets: Int, _ isSigned: Bool = false) -> FieldType {
            .integer(octets: octets, isSigned: isSigned, isBigEndian: false)
        }
        var layouts: [UInt8: Layout] = [
            0x01: .field(.boolean), 0x02: .bits(2, of: whole(1), isSigned: false),
            0x03: .bits(4, of: whole(1), isSigned: false), 0x05: .bits(12, of: whole(2), isSigned: false),
            0x0D: .bits(12, of: whole(2), isSigned: true), 0x14: .field(.real(octets: 4, isBigEndian: false)),
            0x15: .field(.real(octets: 8, isBigEndian: false)), 0x16: .field(.sfloat), 0x17: .field(.float),
            0x19: .field(.text), 0x1A: .field(.wideText),
        ]
        for (code, octets) in [(0x04, 1), (0x06, 2), (0x07, 3), (0x08, 4), (0x09, 6), (0x0A, 8)] as [(UInt8, Int)] {
            layouts[code] = .field(whole(octets))
        }
        for (code, octets) in [(0x0C, 1), (0x0E, 2), (0x0F, 3), (0x10, 4), (0x11, 6), (0x12, 8)] as [(UInt8, Int)] {
            layouts[code] = .field(whole(octets, true))
        }
        for code in [0x0B, 0x13, 0x18, 0x1B, 0x1C] as [UInt8] { layouts[code] = .field(.octets) }
        return layouts
    }()

    /// Returns the exponent, which applies to integers only: Assigned Numbers, "GATT Format Types".
    private static func exponent(_ exponent: Int, _ layout: Layout, _ remarks: inout [String]) -> Int {
        switch layout {
        case .field(let type) where !type.isInteger: return 0
        case .field, .bits: break
        }
        guard abs(exponent) <= 15 else {
            remarks.append("its exponent of \(exponent) is beyond what a number can be, and is ignored")
            return 0
        }
        return exponent
    }

    /// Returns the unit's symbol.
    ///
    /// Some devices swap the bytes of the unit.
    private static func unit(_ number: UInt16, _ remarks: inout [String]) -> String? {
        if let symbol = AssignedUnits.symbol(of: number) { return symbol.isEmpty ? nil : symbol }
        let name = "0x" + String(number, radix: 16, uppercase: true)
        guard let symbol = AssignedUnits.symbol(of: number.byteSwapped) else {
            remarks.append("its unit \(name) is not assigned, and is left out")
            return nil
        }
        let meant = symbol.isEmpty ? "none" : "'\(symbol)'"
        remarks.append("its unit \(name) is not assigned; with its bytes swapped it is \(meant), which is taken")
        return symbol.isEmpty ? nil : symbol
    }

    /// Returns the namespace description: Assigned Numbers, "GATT Namespace Descriptors".
    private static func place(_ number: UInt16) -> String? {
        let places = [
            "front", "back", "top", "bottom", "upper", "lower", "main", "backup", "auxiliary", "supplementary", "flash",
            "inside", "outside", "left", "right", "internal", "external",
        ]
        switch number {
        case 0x0001...0x00FF: return "\(number)"
        case 0x0100..<0x0100 + UInt16(places.count): return places[Int(number - 0x0100)]
        default: return nil
        }
    }
}
