import GattherdBluetooth
import GattherdConfig
import GattherdGATT
import GattherdHistory
import GattherdModel
import GattherdProfiles

/// The rules by which peripherals become devices, and the profiles that they may name them by.
struct Enrolment: Sendable {
    /// More devices than this no rules make: addresses that change all the time must not fill the herd.
    static let limit = 500

    let rules: [EnrolRule]
    private let registry: ProfileRegistry

    init(_ rules: [EnrolRule], _ registry: ProfileRegistry) {
        (self.rules, self.registry) = (rules, registry)
    }

    /// The device that the first rule makes of a peripheral; `nil` when none wants it.
    func device(for peripheral: PeripheralStatus) -> DeviceSettings? {
        // A private address would be another device every quarter of an hour; BlueZ also knows who is long gone.
        guard !peripheral.hasPrivateAddress, peripheral.rssi != nil || peripheral.isConnected else { return nil }
        let services = Set(peripheral.services).union(peripheral.advertisement.serviceData.keys)
        let address = peripheral.id.address
        for rule in rules where rule.admits(services: services, named: peripheral.name, rssi: peripheral.rssi) {
            let profile = rule.needsProfile ? profile(for: services, rule) : nil
            if let name = rule.deviceName(for: address, profile: profile) { return rule.device(named: name, address) }
        }
        return nil
    }

    /// The one that a rule names first, or the first for the service that it asks for, or for any of the peripheral's.
    private func profile(for services: Set<BluetoothUUID>, _ rule: EnrolRule) -> String? {
        if let named = rule.profiles { return named.first?.value }
        let asked = rule.match.service.map { [$0] } ?? services
        return registry.matching(asked).first { !$0.isForAdvertisements }?.name
    }
}

extension [EnrolRule] {
    /// The devices of `sightings` that these rules have made, were heard of lately, and are not among those `named` by people.
    func recalled(_ sightings: [DeviceSighting], beside named: [DeviceSettings], now: Timestamp) -> [DeviceSettings] {
        let addresses = Set(named.map(\.address.value))
        let names = Set(named.map(\.name.value))
        return sightings.compactMap { sighting in
            guard let address = BluetoothAddress(sighting.address), !addresses.contains(address) else { return nil }
            guard !names.contains(sighting.device) else { return nil }
            let rule = first { $0.mayHaveNamed(sighting.device, address) && $0.remembers(sighting.time, now: now) }
            return rule?.device(named: sighting.device, address)
        }
    }
}

extension DeviceSighting {
    init(_ device: DeviceSettings, at time: Timestamp) {
        self.init(device: device.name.value, address: device.address.value.description, time: time)
    }
}

extension EnrolRule {
    fileprivate func remembers(_ lastSeen: Timestamp, now: Timestamp) -> Bool {
        forgetAfter.duration.map { lastSeen.advanced(by: $0) > now } ?? true
    }
}

extension Configuration {
    /// With the devices that its rules have made, as history knows them; where there is no history yet there are none.
    func recallingEnrolled(now: Timestamp = SystemClock.now) -> Configuration {
        guard !enrol.isEmpty, let reader = try? HistoryReader(path: history.path.value),
            let sightings = try? reader.sightings()
        else { return self }
        var result = self
        result.devices += enrol.recalled(sightings, beside: devices, now: now).prefix(Enrolment.limit)
        return result
    }
}
