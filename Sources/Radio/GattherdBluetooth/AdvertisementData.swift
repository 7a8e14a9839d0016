public import GattherdGATT

/// The advertised data of a peripheral, apart from its name and services.
///
/// Untrusted text and bytes from the air: Core Specification Supplement, Part A, "Data Types".
public struct AdvertisementData: Hashable, Sendable {
    /// By company identifier.
    public var manufacturerData: [UInt16: [UInt8]] = [:]
    public var serviceData: [BluetoothUUID: [UInt8]] = [:]
    /// The transmit power in dBm.
    public var txPower: Int?
    public var appearance: UInt16?
    /// The Flags field, which BlueZ reports from 5.78 on.
    public var flags: UInt8?
    /// True if the peripheral is connectable; `nil` if the platform does not report it, like BlueZ.
    public var isConnectable: Bool?

    public init() {}
}
