import GattherdBluetooth
package import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdHistory
import GattherdModel
import GattherdProfiles

/// The rules by which peripherals become devices.
struct EnrolmentRules: Sendable {
    /// The maximum number of devices that rules enrol.
    ///
    /// The limit bounds the effect of changing addresses.
    static let limit = 500
    /// The time without a sighting after which a device makes room for another one, once ``limit`` is reached.
    static let replaceableAfter = Duration.seconds(600)

    private let rules: [EnrolRule]
    private let registry: ProfileRegistry

    init(_ rules: [EnrolRule], _ registry: ProfileRegistry) {
        (self.rules, self.registry) = (rules, registry)
    }

    var isEmpty: Bool { rules.isEmpty }

    /// The device that the first matching rule enrols for a peripheral; `nil` if no rule matches.
    func device(for peripheral: PeripheralStatus) -> DeviceSettings? {
        // A private address changes every quarter of an hour. BlueZ also lists peripherals that are out of range: they
        // have no RSSI.
        guard !peripheral.hasPrivateAddress, peripheral.rssi != nil else { return nil }
        let services = Set(peripheral.services).union(peripheral.advertisement.serviceData.keys)
        let address = peripheral.id.address
        let model = { registry.identify(AdvertisedTraits(peripheral))?.model?.description }
        let (name, rssi) = (peripheral.name, peripheral.rssi)
        for rule in rules where rule.admits(services: services, named: name, rssi: rssi, model: model) {
            let profile = rule.needsProfile ? profile(for: services, rule) : nil
            if let name = rule.deviceName(for: address, profile: profile) { return rule.device(named: name, address) }
        }
        return nil
    }

    /// The first profile of the rule, else the first for the service of its match, else for any of the peripheral's.
    private func profile(for services: Set<BluetoothUUID>, _ rule: EnrolRule) -> String? {
        if let named = rule.profiles { return named.first?.value }
        let asked = rule.match.service.map { [$0] } ?? services
        return registry.matching(asked).first { !$0.isForAdvertisements }?.name
    }
}

extension EnrolledDevice {
    /// The record of an enrolled device; `nil` for a configured one.
    init?(_ device: DeviceSettings, silence: Duration = .zero) {
        guard let rule = device.rule else { return nil }
        let address = device.address.value.description
        self.init(device: device.name.value, address: address, rule: rule, silence: silence)
    }
}

extension Configuration {
    /// This configuration with the devices of earlier runs that its rules would still make and that it does not name.
    func recalling(_ records: [EnrolledDevice]) -> Configuration {
        let addresses = Set(devices.map(\.address.value))
        let names = Set(devices.map(\.name.value))
        let recalled = records.compactMap { record -> DeviceSettings? in
            guard let address = BluetoothAddress(record.address), !addresses.contains(address) else { return nil }
            guard !names.contains(record.device) else { return nil }
            return enrol.first { $0.identity == record.rule }?.device(named: record.device, address)
        }
        // Appending nothing would copy the devices.
        guard !recalled.isEmpty else { return self }
        var result = self
        result.devices += recalled
        return result
    }

    /// This configuration with the enrolled devices that history has, for a command.
    package func recallingEnrolled() -> Configuration {
        guard !enrol.isEmpty, let reader = try? HistoryReader(path: history.path.value),
            let records = try? reader.enrolledDevices()
        else { return self }
        return recalling(records)
    }
}
