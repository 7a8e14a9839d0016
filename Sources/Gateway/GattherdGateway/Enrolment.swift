import GattherdBluetooth
package import GattherdConfig
import GattherdGATT
import GattherdHistory
import GattherdModel
import GattherdProfiles

/// The rules by which peripherals become devices, and the profiles that they may name them by.
struct Enrolment: Sendable {
    /// The most devices that rules make: addresses that change all the time must not fill the herd.
    static let limit = 500
    /// After this time without a sign of it, a device makes room for another one when there are as many as there may be.
    static let patience = Duration.seconds(600)

    let rules: [EnrolRule]
    private let registry: ProfileRegistry

    init(_ rules: [EnrolRule], _ registry: ProfileRegistry) {
        (self.rules, self.registry) = (rules, registry)
    }

    /// The device that the first rule with a name for it makes of a peripheral; `nil` when none wants it.
    func device(for peripheral: PeripheralStatus) -> DeviceSettings? {
        // A private address would be another device every quarter of an hour; BlueZ also knows who is long gone.
        guard !peripheral.hasPrivateAddress, peripheral.rssi != nil else { return nil }
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

extension EnrolledDevice {
    /// `nil` for a device that is named.
    init?(_ device: DeviceSettings, silence: Duration = .zero) {
        guard let rule = device.rule else { return nil }
        let address = device.address.value.description
        self.init(device: device.name.value, address: address, rule: rule, silence: silence)
    }
}

extension Configuration {
    /// With those of the devices that rules have made before that its rules would still make, and that nobody has named.
    func recalling(_ records: [EnrolledDevice]) -> Configuration {
        let addresses = Set(devices.map(\.address.value))
        let names = Set(devices.map(\.name.value))
        var result = self
        result.devices += records.compactMap { record in
            guard let address = BluetoothAddress(record.address), !addresses.contains(address) else { return nil }
            guard !names.contains(record.device) else { return nil }
            return enrol.first { $0.identity == record.rule }?.device(named: record.device, address)
        }
        return result
    }

    /// The same for a command, as far as history can tell it.
    package func recallingEnrolled() -> Configuration {
        guard !enrol.isEmpty, let reader = try? HistoryReader(path: history.path.value),
            let records = try? reader.enrolledDevices()
        else { return self }
        return recalling(records)
    }
}
