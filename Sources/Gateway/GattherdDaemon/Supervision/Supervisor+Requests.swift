import GattherdMachines
public import GattherdModel

// Requests; all of them may come from any thread.
extension Supervisor {
    /// All devices, sorted by name, including those that are being removed.
    public nonisolated var devices: [SupervisedDevice] {
        (context.configuredDevices.devices + sensors.devices).sorted { $0.name < $1.name }
    }

    /// Returns the downloads of a device's stored records.
    public nonisolated func downloads(of device: SupervisedDevice) -> [DaemonStatus.Download] {
        context.catalogue.downloads(of: device.name).map { stream, status in
            var download = DaemonStatus.Download(
                stream: stream,
                state: status.state.rawValue,
                since: status.since,
                done: status.done,
                new: status.stored
            )
            (download.total, download.detail) = (status.total, status.detail)
            return download
        }
    }

    /// Returns the advertised traits of a device; `nil` if it was not heard.
    public nonisolated func traits(of device: SupervisedDevice) -> AdvertisedTraits? {
        device.listening == nil ? status.traits(of: device.name) : sensors.traits(of: device)
    }

    /// Returns the last advertisement of a device since the start.
    ///
    /// The addresses of a sensor with an identity key are known to its watch only.
    public nonisolated func lastSighting(of device: SupervisedDevice) -> SupervisorStatus.Sighting? {
        let sightings = [status.lastSighting(of: device.name), sensors.sighting(of: device)]
        return sightings.compactMap(\.self).max { $0.time < $1.time }
    }

    /// Stops ``run()``.
    public nonisolated func stop() {
        inbox.post(.stop)
    }

    /// Returns when the loop has processed all earlier messages, or the caller is cancelled.
    nonisolated func roundTrip() async {
        await inbox.roundTrip()
    }

    /// Replaces the devices and profiles; unaffected links stay.
    public nonisolated func reload(devices: [SupervisedDevice], profiles: [any Profile]) async {
        let reload = ReloadedDevices(
            devices: devices.filter { $0.listening == nil },
            sensors: devices.filter { $0.listening != nil },
            profiles: profiles,
            held: await parts.holds.stored() ?? []
        )
        inbox.post(.reload(reload))
    }

    /// Offers every unknown peripheral to `offer`, and makes all adapters scan for them.
    ///
    /// Peripherals that BlueZ already knows are offered at once. `nil` ends the offers.
    public nonisolated func offerPeripherals(to offer: Offer?) {
        inbox.post(.offer(offer))
    }

    /// Makes all adapters scan for unknown peripherals, or ends that.
    public nonisolated func setListening(_ isListening: Bool) {
        inbox.post(.listen(isListening))
    }

    /// GATT operations for people over the supervisor's links.
    public nonisolated var access: DeviceAccess {
        DeviceAccess(
            configuredDevices: context.configuredDevices,
            status: status,
            context: context,
            watches: parts.watches,
            connectTimeout: parts.settings.connectTimeout,
            release: { [inbox] in inbox.send(.link(device: $0, .release)) }
        )
    }

    /// The requests about bonds.
    ///
    /// A device whose bond is removed is retried without a back-off.
    public nonisolated var bonds: BondService {
        BondService(parts.central, devices: context.configuredDevices.devices, keeper: context.bonds)
    }

    /// Ends the hold on a device: it is connected from now on.
    public nonisolated func connect(_ device: String) async throws(ControlError) {
        try await parts.holds.set(device, false)
    }

    /// Allows the device to be connected, because this gateway owns it.
    public nonisolated func admit(_ device: String) {
        inbox.send(.link(device: device, .admitted))
    }

    /// Ends a device's link, because another gateway may connect it; the detail names that gateway.
    public nonisolated func withdraw(_ device: String, _ detail: String) {
        inbox.send(.link(device: device, .withdrawn(detail: detail)))
    }

    /// Puts a device on hold: it stays disconnected, also after a restart.
    public nonisolated func disconnect(_ device: String) async throws(ControlError) {
        try await parts.holds.set(device, true)
    }
}
