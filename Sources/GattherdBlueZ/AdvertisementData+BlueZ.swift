import GattherdBluetooth
import GattherdDBus
import GattherdGATT

extension PropertyNews {
    /// True when an advertisement has brought them: it always tells its strength, or what is in it.
    var isAdvertisement: Bool {
        isHeard
            && (self["RSSI"]?.int != nil || self["ManufacturerData"]?.entries != nil
                || self["ServiceData"]?.entries != nil)
    }
}

extension AdvertisementData {
    mutating func apply(_ news: PropertyNews) {
        news.update(&txPower, "TxPower", \.int)
        news.update(&appearance, "Appearance") { $0.int.flatMap { UInt16(exactly: $0) } }
        news.update(&flags, "AdvertisingFlags") { $0.octets?.first }
        update(&manufacturerData, news, "ManufacturerData") { $0.int.flatMap { UInt16(exactly: $0) } }
        update(&serviceData, news, "ServiceData") { $0.string.flatMap { BluetoothUUID($0) } }
    }

    private func update<Key: Hashable>(
        _ data: inout [Key: [UInt8]],
        _ news: PropertyNews,
        _ name: String,
        key: (DBusValue) -> Key?
    ) {
        var value: [Key: [UInt8]]? = data
        news.update(&value, name) { all in
            all.entries?.reduce(into: [:]) { data, entry in
                guard let key = key(entry.key), let octets = entry.value.octets else { return }
                data[key] = octets
            }
        }
        data = value ?? [:]
    }
}
