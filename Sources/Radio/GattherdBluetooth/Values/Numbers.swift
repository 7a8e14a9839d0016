public import GattherdGATT

// Little-endian integers of exactly their width, IEEE 754 numbers, text.

/// An integer type of GATT values.
public protocol BluetoothInteger: FixedWidthInteger, Readable, Writable {}

extension BluetoothInteger {
    public init(octets: [UInt8]) throws(PayloadError) {
        var cursor = PayloadCursor(octets.span)
        self.init(truncatingIfNeeded: try cursor.unsigned(octets: Self.bitWidth / 8))
        try cursor.end()
    }

    public func octets() -> [UInt8] {
        var writer = PayloadWriter()
        writer.append(UInt64(truncatingIfNeeded: self), octets: Self.bitWidth / 8)
        return writer.octets
    }
}

extension UInt8: BluetoothInteger {}
extension UInt16: BluetoothInteger {}
extension UInt32: BluetoothInteger {}
extension UInt64: BluetoothInteger {}
extension Int8: BluetoothInteger {}
extension Int16: BluetoothInteger {}
extension Int32: BluetoothInteger {}
extension Int64: BluetoothInteger {}

extension Float: Readable, Writable {
    public init(octets: [UInt8]) throws(PayloadError) {
        self.init(bitPattern: try UInt32(octets: octets))
    }

    public func octets() -> [UInt8] { bitPattern.octets() }
}

extension Double: Readable, Writable {
    public init(octets: [UInt8]) throws(PayloadError) {
        self.init(bitPattern: try UInt64(octets: octets))
    }

    public func octets() -> [UInt8] { bitPattern.octets() }
}

extension Bool: Readable, Writable {
    public init(octets: [UInt8]) throws(PayloadError) {
        let octet = try UInt8(octets: octets)
        guard octet <= 1 else { throw .invalid(reason: "\(octet) is neither 0 nor 1") }
        self = octet == 1
    }

    public func octets() -> [UInt8] { [self ? 1 : 0] }
}

/// UTF-8, without the NULs that some devices end it with.
extension String: Readable, Writable {
    public init(octets: [UInt8]) throws(PayloadError) {
        let end = octets.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0
        guard let text = String(validating: octets[..<end], as: UTF8.self) else {
            throw .invalid(reason: "not UTF-8")
        }
        self = text
    }

    public func octets() -> [UInt8] { Array(utf8) }
}
