extension BluetoothUUID: ExpressibleByIntegerLiteral {
    /// Makes the UUID of a 16-bit assigned number that stands in the source, for example `0x180D`.
    public init(integerLiteral assigned: UInt16) {
        self.init(assigned)
    }
}
