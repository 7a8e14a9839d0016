public import GattherdGATT

/// An advertisement that a scan received.
public struct Advertisement: Sendable {
    public let peripheral: Peripheral
    /// The advertised name: untrusted text from the air.
    public let name: String?
    /// The signal strength in dBm.
    public let rssi: Int
    /// The advertised services.
    public let services: [BluetoothUUID]
    /// The other advertised data.
    public let data: AdvertisementData
    /// True if the address changes from time to time and identifies no device.
    public let hasPrivateAddress: Bool
    /// The time of reception.
    public let time: ContinuousClock.Instant

    public var address: BluetoothAddress { peripheral.address }

    init?(_ sighting: Sighting, _ central: Central) {
        let status = sighting.status
        guard let rssi = status.rssi else { return nil }
        peripheral = Peripheral(status.id, of: central)
        name = status.name
        self.rssi = rssi
        services = status.services
        data = status.advertisement
        hasPrivateAddress = status.hasPrivateAddress
        time = sighting.time
    }
}

/// A filter of advertisements; criteria that are not set admit all.
public struct ScanFilter: Hashable, Sendable {
    /// The services to search for; an advertisement must name one of them, or have its service data.
    public var services: [BluetoothUUID] = []
    public var name: String?
    public var namePrefix: String?
    /// The minimum signal strength in dBm.
    public var minimumRSSI: Int?
    public var addresses: Set<BluetoothAddress>?

    public init() {}

    func admits(_ status: PeripheralStatus) -> Bool {
        guard let rssi = status.rssi, rssi >= minimumRSSI ?? rssi else { return false }
        guard name == nil || status.name == name else { return false }
        guard namePrefix.map({ status.name?.hasPrefix($0) == true }) ?? true else { return false }
        guard addresses?.contains(status.id.address) ?? true else { return false }
        return offersService(status)
    }

    private func offersService(_ status: PeripheralStatus) -> Bool {
        services.isEmpty
            || services.contains { status.services.contains($0) || status.advertisement.serviceData[$0] != nil }
    }
}

/// The advertised data of a peripheral, apart from its name and services.
///
/// Untrusted text and bytes from the air: Core Specification Supplement, Part A, "Data Types".
public struct AdvertisementData: Hashable, Sendable {
    /// The manufacturer specific data, by company identifier.
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
