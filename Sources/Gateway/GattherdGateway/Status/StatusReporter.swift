import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdHistory
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdProfiles
import GattherdSync

/// Collects the status of the daemon from its parts.
struct StatusReporter: Sendable {
    private let running: RunningConfiguration
    private let supervisor: Supervisor
    private let intake: Intake
    private let outputs: [any Output]
    private let history: ReadingHistory
    private let alerts: AlertMonitor
    private let reloads: Locked<ReloadState>
    private let started: Timestamp
    private let steps: Locked<ClockSteps>
    /// The leases of all devices; `nil` without leases.
    var leases: LeaseBoard?

    init(
        _ running: RunningConfiguration,
        _ gateway: Gateway,
        _ outputs: [any Output],
        _ history: ReadingHistory,
        _ alerts: AlertMonitor,
        _ reloads: Locked<ReloadState>,
        started: Timestamp,
        _ steps: ClockSteps
    ) {
        (self.running, supervisor, intake) = (running, gateway.supervisor, gateway.intake)
        (self.outputs, self.history, self.alerts) = (outputs, history, alerts)
        (self.reloads, self.started) = (reloads, started)
        self.steps = Locked(steps)
    }

    /// The status of the whole daemon.
    var status: DaemonStatus {
        var status = DaemonStatus(
            version: GattherdVersion.current,
            gateway: running.configuration.gateway,
            started: started,
            history: historyStatus
        )
        status.adapters = supervisor.status.adapters.map(adapterStatus)
        let labels = running.configuration.devices.map { ($0.name.value, $0) }
        let settings = Dictionary(labels) { first, _ in first }
        status.devices = supervisor.devices.compactMap { deviceStatus($0, settings[$0.name]) }
        status.outputs = outputs.map { history.summary(of: $0) }
        let active = alerts.active
        status.alerts = active.isEmpty ? nil : active
        status.fleet = leases?.summary
        status.configuration = reloads.withLock(\.status)
        status.dropped = intake.dropped.value
        let steps = steps.withLock { steps in
            steps.observe(SystemClock.now, uptime: SystemClock.uptime)
            return steps
        }
        status.correctTimes(steps)
        return status
    }

    private var historyStatus: DaemonStatus.History {
        let state = history.status
        var status = DaemonStatus.History(at: running.configuration.history.path.value, seq: history.newestSeq)
        status.size = state.size
        status.undelivered = state.undelivered
        status.unstored = state.unstored
        status.error = state.fault?.detail
        status.clock = state.clockDoubt?.text
        status.lost = state.isNewAfterLoss ? true : nil
        return status
    }

    private func adapterStatus(_ adapter: AdapterStatus) -> DaemonStatus.Adapter {
        var status = DaemonStatus.Adapter(
            address: adapter.address.description,
            name: adapter.name,
            isPowered: adapter.isPowered,
            isDiscovering: adapter.isDiscovering
        )
        guard let report = supervisor.status.report(of: adapter.address) else { return status }
        status.links = report.links
        status.slots = report.slots
        status.connecting = report.attempts
        status.waiting = report.waiting.count
        status.lastRecovery = report.lastRemedy?.step.rawValue
        return status
    }

    private func deviceStatus(_ device: SupervisedDevice, _ settings: DeviceSettings?) -> DaemonStatus.Device? {
        guard let link = supervisor.status.link(of: device.name) else { return nil }
        let profiles = supervisor.status.profiles(of: device.name)
        var status = DaemonStatus.Device(link, address: device.address.description, profiles: profiles)
        (status.title, status.area, status.note) = (settings?.title, settings?.area, settings?.note)
        status.onlyAdvertises = device.listening == nil ? nil : true
        status.readings = device.meter.readings
        status.rejects = device.meter.rejects
        let undecodable = device.meter.undecodable.map { "\($0.stream): \($0.reason)" }
        status.undecodable = undecodable.isEmpty ? nil : undecodable
        let downloads = supervisor.downloads(of: device)
        status.records = downloads.isEmpty ? nil : downloads
        status.lastReading = device.meter.lastReading?.rfc3339
        let sighting = supervisor.lastSighting(of: device)
        status.lastHeard = sighting?.time.rfc3339
        status.rssi = sighting?.rssi ?? status.rssi
        status.lease = leases.flatMap { leases in
            leases.status(of: device.name).map { DaemonStatus.Lease($0, problem: leases.problem) }
        }
        let identity = supervisor.traits(of: device).flatMap { running.registry.identify($0) }
        status.model = identity?.model?.description
        status.suggestedProfile = identity.flatMap { device.suggestion($0, served: profiles) }
        return status
    }

    /// Returns the payload of the retained topic `bridge/info`.
    func bridgeInfo(_ configuration: Configuration, _ registry: ProfileRegistry) -> [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("version")
            writer.string(GattherdVersion.current)
            writer.key("gateway")
            writer.string(configuration.gateway)
            writer.key("started")
            writer.timestamp(started)
            writer.key("profiles")
            writer.array(registry.profiles) { $0.string($1.name) }
            writer.key("devices")
            writer.beginObject()
            for device in configuration.devices {
                writer.key(device.name.value)
                writer.string(device.address.value.description)
            }
            writer.endObject()
            writer.endObject()
        }
    }
}

extension DaemonStatus.Lease {
    fileprivate init(_ status: LeaseStatus, problem: String?) {
        self.init(state: status.role.rawValue, epoch: status.epoch, reason: status.reason)
        (owner, self.problem) = (status.owner, problem)
        bids = status.bids.map { bid in
            Bid(gateway: bid.gateway, standing: bid.standing.rawValue, rssi: bid.rssi, problem: bid.problem)
        }
    }
}

extension SupervisedDevice {
    /// Returns the profile that decodes the device, unless it is named or served already.
    fileprivate func suggestion(_ identity: Identification, served: [String]) -> String? {
        let used = served + (profileNames ?? [])
        guard identity.model != nil, identity.isOptIn || profileNames != nil else { return nil }
        return used.contains(identity.profile) ? nil : identity.profile
    }
}

extension ReadingHistory {
    /// Returns the state of an output.
    ///
    /// Entries that history has skipped for the output count as skipped too.
    nonisolated func summary(of output: any Output) -> DaemonStatus.Output {
        var summary = output.summary(at: SystemClock.now)
        let (state, newest) = (status, newestSeq)
        summary.skipped += state.skipped[output.name] ?? 0
        // The output counts numbers, also those that no entry has.
        let unused = state.unused.count(after: newest - summary.backlog, through: newest)
        summary.backlog = max(0, summary.backlog - unused)
        return summary
    }
}
