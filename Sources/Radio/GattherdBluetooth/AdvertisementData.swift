public import GattherdGATT

/// What a peripheral says of itself to everybody, apart from its name and services.
///
/// Text and octets from the air, not to be trusted: Core Specification Supplement, Part A, "Data Types".
public struct AdvertisementData: Hashable, Sendable {
    /// By company identifier.
    public var manufacturerData: [UInt16: [UInt8]] = [:]
    public var serviceData: [BluetoothUUID: [UInt8]] = [:]
    /// The power that it sends with, in dBm.
    public var txPower: Int?
    public var appearance: UInt16?
    /// The Flags field; BlueZ tells it from 5.78 on.
    public var flags: UInt8?
    /// Whether it lets itself be connected; `nil` where the platform does not say, as BlueZ.
    public var isConnectable: Bool?

    public init() {}
}
