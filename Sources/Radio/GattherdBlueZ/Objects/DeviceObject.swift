import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// One `org.bluez.Device1` object.
///
/// Signals of its advertisements are by far the most frequent ones: it is changed in place.
final class DeviceObject {
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
    /// The time of the last event that only reported an advertisement; `nil` if there was another event since.
    private var reported: SuspendingClock.Instant?

    /// The maximum length of a name in Unicode scalars, and the maximum number of services in an advertisement.
    private static let (longestName, maximumServices) = (248, 256)
    /// The shortest time between two events that only report advertisements.
    private static let reportInterval = Duration.seconds(2)

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
        status.hasPrivateAddress = hasPrivateAddress
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
    func apply(_ changes: PropertyChanges) -> [HeardAdvertisement.Frame]? {
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
        reported = nil
        guard changes.isAdvertisement else {
            advertisement.apply(changes)
            return nil
        }
        heard += 1
        return advertisement.hear(changes)
    }

    // MARK: - Advertisements

    /// Applies changes of nothing but an advertisement; returns its frames.
    func hear(_ changes: PropertyChanges) -> [HeardAdvertisement.Frame] {
        changes.update(&rssi, "RSSI", \.decibels)
        heard += 1
        let before = advertisement.sourceCount
        let frames = advertisement.hear(changes)
        // The device may be recognized by data that it has not sent before.
        if advertisement.sourceCount > before { reported = nil }
        return frames
    }

    /// Applies a repetition of the last advertisement, which may state its strength; returns the strength.
    func hearAgain(_ rssi: Int?) -> Int? {
        if let rssi { self.rssi = rssi }
        heard += 1
        return self.rssi
    }

    /// Returns true if an event has to report the last advertisement now.
    func isReportDue(at now: SuspendingClock.Instant) -> Bool {
        if let reported, now - reported < Self.reportInterval { return false }
        reported = now
        return true
    }

    /// Returns an advertisement with these frames.
    func heard(_ id: PeripheralID, _ frames: [HeardAdvertisement.Frame]) -> HeardAdvertisement {
        HeardAdvertisement(peripheral: id, name: name, rssi: rssi, services: services ?? [], frames: frames)
    }

    /// The frames that are certain in a repetition of the last advertisement, which had `frames`.
    func framesOfRepetition(_ frames: [HeardAdvertisement.Frame]) -> [HeardAdvertisement.Frame] {
        frames.filter { advertisement.isAlone($0.source) }
    }

    /// True if the address changes from time to time.
    var hasPrivateAddress: Bool { addressType == "random" && address?.isStatic == false }

    /// Applies the connection state.
    ///
    /// BlueZ 5.66 does not always signal `Connected`; resolved services imply it.
    private func applyConnected(_ changes: PropertyChanges) {
        if let value = changes["Connected"]?.bool {
            isConnected = value
        } else if changes["ServicesResolved"]?.bool == true {
            isConnected = true
        } else if changes.invalidated.contains("Connected") {
            isConnected = false
        }
    }
}
