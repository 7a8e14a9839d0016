extension BluetoothUUID: ExpressibleByIntegerLiteral {
    /// Makes a UUID from a literal: an assigned number of 16 or 32 bits, for example `0x180D`, or all 128
    /// bits, for example `0x7a4b0001_999f_4717_b63a_066e06971f59`.
    public init(integerLiteral number: UInt128) {
        if let assigned = UInt32(exactly: number) {
            self.init(assigned: assigned)
        } else {
            self.init(high: UInt64(truncatingIfNeeded: number >> 64), low: UInt64(truncatingIfNeeded: number))
        }
    }
}
