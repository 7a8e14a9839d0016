import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// One `org.bluez.Device1` object.
struct DeviceObject: Hashable {
    private(set) var adapterPath: String
    private(set) var address: BluetoothAddress?
    var isConnected = false {
        didSet {
            if !isConnected { isServicesResolved = false }
            if isConnected, !oldValue { endReason = nil }
        }
    }
    /// The number of the newest link; 0 before the first.
    var link: UInt64 = 0
    /// The reason of the last link's end, which BlueZ signals from 5.83 on.
    var endReason: DisconnectReason?

    /// True while a scan receives the device.
    var isHeard: Bool { rssi != nil }

    private var name: String?
    private var rssi: Int?
    private var services: [BluetoothUUID]?
    private var addressType: String?
    private var isServicesResolved: Bool?
    private var isPaired: Bool?
    private var isBonded: Bool?
    private var isTrusted: Bool?
    private var heard: UInt64 = 0
    private var advertisement = AdvertisementData()

    /// The maximum length of a name in Unicode scalars, and the maximum number of services in an advertisement.
    private static let (longestName, maximumServices) = (248, 256)

    /// Creates an object with the address that BlueZ encodes in `path`.
    init(path: String) {
        adapterPath = BlueZ.parent(of: path)
        address = BluetoothAddress(BlueZ.name(of: path).dropFirst(4).split(separator: "_").joined(separator: ":"))
    }

    func status(_ id: PeripheralID) -> PeripheralStatus {
        var status = PeripheralStatus(id: id)
        status.name = name
        status.rssi = rssi
        status.services = services ?? []
        status.hasPrivateAddress = addressType == "random" && !id.address.isStatic
        status.isConnected = isConnected
        status.link = link
        status.isServicesResolved = isConnected && isServicesResolved == true
        status.isPaired = isPaired ?? false
        status.heard = heard
        status.advertisement = advertisement
        return status
    }

    /// Returns the state of the bond; BlueZ before 5.65 does not report whether keys are stored.
    func bond(_ id: PeripheralID) -> Bond {
        var bond = Bond(peripheral: id)
        bond.name = name
        bond.isPaired = isPaired ?? false
        bond.isBonded = isBonded ?? bond.isPaired
        bond.isTrusted = isTrusted ?? false
        bond.isConnected = isConnected
        return bond
    }

    /// Applies changes; returns the frames of an advertisement, or `nil` for other changes.
    mutating func apply(_ changes: PropertyChanges) -> [HeardAdvertisement.Frame]? {
        if let path = changes["Adapter"]?.string { adapterPath = path }
        if let text = changes["Address"]?.string { address = BluetoothAddress(text) }
        changes.update(&name, "Name") { $0.string.map { String($0.unicodeScalars.prefix(Self.longestName)) } }
        changes.update(&rssi, "RSSI", \.decibels)
        changes.update(&services, "UUIDs") {
            $0.strings?.prefix(Self.maximumServices).compactMap { BluetoothUUID($0) }
        }
        changes.update(&addressType, "AddressType", \.string)
        changes.update(&isServicesResolved, "ServicesResolved", \.bool)
        changes.update(&isPaired, "Paired", \.bool)
        changes.update(&isBonded, "Bonded", \.bool)
        changes.update(&isTrusted, "Trusted", \.bool)
        applyConnected(changes)
        let frames = changes.isAdvertisement ? advertisement.frames(in: changes) : nil
        advertisement.apply(changes)
        if changes.isAdvertisement { heard += 1 }
        return frames
    }

    /// Applies the connection state.
    ///
    /// BlueZ 5.66 does not always signal `Connected`; resolved services imply it.
    private mutating func applyConnected(_ changes: PropertyChanges) {
        if let value = changes["Connected"]?.bool {
            isConnected = value
        } else if changes["ServicesResolved"]?.bool == true {
            isConnected = true
        } else if changes.invalidated.contains("Connected") {
            isConnected = false
        }
    }
}
