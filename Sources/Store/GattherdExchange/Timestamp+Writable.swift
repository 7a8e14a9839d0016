import GattherdModel

extension Timestamp {
    /// The instants that RFC 3339 can represent.
    static let writable =
        Timestamp(microseconds: -62_167_219_200_000_000)...Timestamp(microseconds: 253_402_300_799_999_999)
}
