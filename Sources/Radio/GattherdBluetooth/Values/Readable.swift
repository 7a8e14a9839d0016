public import FoundationEssentials
public import GattherdGATT

/// A value that can be decoded from a characteristic's bytes.
public protocol Readable: Sendable {
    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` if the bytes are not such a value.
    init(octets: [UInt8]) throws(PayloadError)
}

/// A value that can be written to a characteristic.
public protocol Writable: Sendable {
    /// Encodes the value.
    ///
    /// - Throws: `PayloadError` if the value cannot be encoded.
    func octets() throws(PayloadError) -> [UInt8]
}

/// The default implementation for collections of bytes.
extension Readable where Self: RangeReplaceableCollection, Element == UInt8 {
    public init(octets: [UInt8]) {
        self.init(octets)
    }
}

/// The default implementation for collections of bytes.
extension Writable where Self: Sequence, Element == UInt8 {
    public func octets() -> [UInt8] { Array(self) }
}

extension Array: Readable, Writable where Element == UInt8 {}
extension ArraySlice: Readable, Writable where Element == UInt8 {}
extension Data: Readable, Writable {}

extension Readable {
    /// Reads a value for an operation of the library.
    init(value octets: [UInt8]) throws(BluetoothError) {
        do throws(PayloadError) {
            try self.init(octets: octets)
        } catch {
            let text = octets.isEmpty ? "an empty value" : Hexadecimal.text(octets.span)
            throw BluetoothError(.invalidValue, "\(text) is not a valid \(Self.self): \(error)")
        }
    }
}

extension Writable {
    /// Encodes the value for a write of the library.
    func value(for attribute: CharacteristicID, of peripheral: Peripheral) throws(BluetoothError) -> [UInt8] {
        do throws(PayloadError) {
            return try octets()
        } catch {
            let error = BluetoothError(.invalidValue, "this \(Self.self) cannot be sent: \(error)")
            throw error.during(.write, of: "\(attribute) of \(peripheral.address)")
        }
    }
}
