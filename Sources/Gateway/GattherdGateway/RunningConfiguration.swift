import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdGATT
import GattherdHTTP
import GattherdModel
import GattherdProfiles
import GattherdSync

/// The configuration that the daemon works by, with its profiles and devices.
final class RunningConfiguration: Sendable {
    private struct State: Sendable {
        var configuration: Configuration
        var registry: ProfileRegistry
        var devices: [SupervisedDevice]
    }

    private let state: Locked<State>

    init(_ configuration: Configuration, _ registry: ProfileRegistry, _ devices: [SupervisedDevice]) {
        state = Locked(State(configuration: configuration, registry: registry, devices: devices))
    }

    var configuration: Configuration { state.withLock(\.configuration) }
    var registry: ProfileRegistry { state.withLock(\.registry) }
    /// The devices of the configuration, with the content of the files that it names.
    var devices: [SupervisedDevice] { state.withLock(\.devices) }

    /// Replaces the configuration by one made with ``Configuration/taking(_:)``.
    func replace(_ configuration: Configuration, _ registry: ProfileRegistry, _ devices: [SupervisedDevice]) {
        state.withLock { state in
            (state.configuration, state.registry, state.devices) = (configuration, registry, devices)
        }
    }

    /// The devices that only advertise, each with all streams that its profiles decode.
    fileprivate var sensorDescriptions: [DeviceDescription] {
        let state = state.withLock { $0 }
        return state.devices.filter { $0.listening != nil }.map { device in
            let profiles = (device.profileNames ?? []).compactMap { state.registry[$0] }
            return DeviceDescription(sensor: device.name, device.address, profiles)
        }
    }

    /// The line that `systemctl status` shows while all is well.
    var systemdStatus: String {
        let configuration = configuration
        let count = configuration.devices.count
        return configuration.hasNothingToConnect
            ? "no devices: \(DisplayWords.firstStep)"
            : "\(count) device\(count == 1 ? "" : "s") configured"
    }
}

/// Applies other devices and profiles to the parts of a running gateway.
struct GatewayUpdater: Sendable {
    private let running: RunningConfiguration
    private let supervisor: Supervisor
    private let delivery: MQTTDelivery?
    private let enrolled: Locked<EnrolledDevices>
    private let reporter: StatusReporter
    private let alerts: AlertMonitor
    private let live: LiveStatus
    private let announcers: [any Announcer]

    init(
        _ running: RunningConfiguration,
        _ supervisor: Supervisor,
        _ delivery: MQTTDelivery?,
        _ enrolled: Locked<EnrolledDevices>,
        _ reporter: StatusReporter,
        _ alerts: AlertMonitor,
        _ live: LiveStatus,
        _ announcers: [any Announcer]
    ) {
        (self.live, self.announcers) = (live, announcers)
        (self.running, self.supervisor, self.delivery) = (running, supervisor, delivery)
        (self.enrolled, self.reporter, self.alerts) = (enrolled, reporter, alerts)
    }

    /// Continues with `next`; links of unchanged devices stay.
    func apply(_ next: Configuration, _ registry: ProfileRegistry, _ devices: [SupervisedDevice]) async {
        running.replace(next, registry, devices)
        update()
        await supervisor.reload(devices: devices, profiles: registry.profiles)
        live.renew()
    }

    /// Passes the devices and the rules about them to alerts and to the outputs.
    func update() {
        let configuration = running.configuration
        let addresses = configuration.devices.map { ($0.name.value, $0.address.value.description) }
        let devices = Dictionary(addresses) { first, _ in first }
        alerts.configure(configuration.alerts, devices: devices, sensors: running.sensorDescriptions) { [live] in
            live.newestAlertValues
        }
        updateDelivery()
        for announcer in announcers { announcer.updatePermissions() }
    }

    private func updateDelivery() {
        let configuration = running.configuration
        guard let delivery, let mqtt = configuration.mqtt else { return }
        delivery.apply(
            PublishingRules(mqtt, configuration.devices),
            ControlPermissions(mqtt, configuration.devices),
            Presentation(configuration.devices, configuration.alerts)
        )
        delivery.setInfo(reporter.bridgeInfo(configuration, running.registry))
        // Delivery clears the topics of all other devices, so the enrolled ones must be known.
        guard !enrolled.withLock(\.isRecallDue) else { return }
        let addresses = configuration.devices.map { ($0.name.value, $0.address.value.description) }
        delivery.enrol(Dictionary(addresses) { first, _ in first })
    }
}

extension DeviceDescription {
    /// Creates the description of a sensor that has sent all frames of its profiles.
    fileprivate init(sensor name: String, _ address: BluetoothAddress, _ profiles: [any Profile]) {
        let streams = AdvertisedFrames(profiles).streams.flatMap { stream in
            [stream.metrics, [.signalStrength]].map { Stream(name: stream.name, metrics: $0) }
        }
        self.init(device: name, address: address.description, streams: streams, isConnectable: false)
    }
}
