public import GattherdGATT

/// A value that can be made of a characteristic's octets.
public protocol Readable: Sendable {
    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` when the octets are something else.
    init(octets: [UInt8]) throws(PayloadError)
}

/// A value that can be written to a characteristic.
public protocol Writable: Sendable {
    /// The value as it is sent.
    ///
    /// - Throws: `PayloadError` when it cannot be said in octets.
    func octets() throws(PayloadError) -> [UInt8]
}

/// Any collection of octets needs to say no more than that it conforms.
extension Readable where Self: RangeReplaceableCollection, Element == UInt8 {
    public init(octets: [UInt8]) {
        self.init(octets)
    }
}

/// Any collection of octets needs to say no more than that it conforms.
extension Writable where Self: Sequence, Element == UInt8 {
    public func octets() -> [UInt8] { Array(self) }
}

extension Array: Readable, Writable where Element == UInt8 {}
extension ArraySlice: Readable, Writable where Element == UInt8 {}

extension Readable {
    /// Reads a value for an operation of the library.
    init(value octets: [UInt8]) throws(BluetoothError) {
        do throws(PayloadError) {
            try self.init(octets: octets)
        } catch {
            let text = octets.isEmpty ? "no octets" : Hexadecimal.text(octets.span)
            throw BluetoothError(.invalidValue, "\(text) is no \(Self.self): \(error)")
        }
    }
}

extension Writable {
    /// Encodes the value for an operation of the library.
    func value() throws(BluetoothError) -> [UInt8] {
        do throws(PayloadError) {
            return try octets()
        } catch {
            throw BluetoothError(.invalidValue, "a \(Self.self) that cannot be sent: \(error)")
        }
    }
}
