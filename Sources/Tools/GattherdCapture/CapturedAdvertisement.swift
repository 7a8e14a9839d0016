package import GattherdGATT
package import GattherdModel

/// A received advertisement or scan response.
package struct CapturedAdvertisement: Hashable, Sendable {
    /// The time of its receipt; `nil` if it was not recorded.
    package var time: Timestamp?
    /// The sender; `nil` if it was not recorded.
    package var address: BluetoothAddress?
    /// The signal strength in dBm.
    package var rssi: Int?
    /// The AD structures.
    package var octets: [UInt8]

    package init(
        time: Timestamp? = nil,
        address: BluetoothAddress? = nil,
        rssi: Int? = nil,
        octets: [UInt8]
    ) {
        self.time = time
        self.address = address
        self.rssi = rssi
        self.octets = octets
    }
}
