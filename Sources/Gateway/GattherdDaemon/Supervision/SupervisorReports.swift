import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel

/// Publishes the states of links and devices: to the status, the announcer, history and the log.
struct LinkReporter: Sendable {
    let status: SupervisorStatus
    let announcer: (any Announcer)?
    let recorder: EventRecorder
    let log: Log
    let now: @Sendable () -> Timestamp

    /// Publishes the first state of a device.
    func start(_ device: String, isHeld: Bool) {
        var link = LinkStatus(device: device, state: isHeld ? .held : .waiting, since: now())
        if isHeld { link.reason = .requested }
        update(link)
    }

    /// Publishes a state without an event.
    func update(_ link: LinkStatus) {
        status.set(link)
        announcer?.update(link)
    }

    /// Publishes a change of a device's link.
    func publish(_ change: LinkChange, of device: String, _ link: PeripheralID?, rssi: Int?) {
        let time = now()
        let before = status.link(of: device)
        let since = change.isWithinState ? before?.since : nil
        var new = LinkStatus(device: device, state: change.to, since: since ?? time)
        (new.reason, new.detail, new.attempt) = (change.reason, change.detail, change.attempt)
        new.nextRetry = change.retryAfter.map { time.advanced(by: $0) }
        (new.adapter, new.rssi) = (link?.adapter.description, rssi)
        publish(new, change)
    }

    /// Publishes a link's new state.
    func publish(_ link: LinkStatus, _ change: LinkChange) {
        update(link)
        guard !change.isWithinState else {
            return change.to == .ready ? recordSilence(change, of: link.device) : ()
        }
        recorder.record(
            device: link.device,
            kind: "link",
            [
                "from": .text(change.from.rawValue),
                "to": .text(change.to.rawValue),
                "reason": change.reason.map { .text($0.rawValue) },
                "detail": change.detail.map { .text($0) },
                "attempt": .integer(Int64(change.attempt)),
                "retry_after": change.retryAfter.map { .real($0 / .seconds(1)) },
            ]
        )
        var fields = [
            LogField("device", link.device), LogField("from", change.from.rawValue),
            LogField("to", change.to.rawValue),
        ]
        if let reason = change.reason { fields.append(.init("reason", reason.rawValue)) }
        if let detail = change.detail { fields.append(.init("detail", detail)) }
        log(level(of: change), "link state changed", fields)
    }

    /// The level of a change; the loss of bluetoothd has a line of its own, whatever the number of devices.
    private func level(of change: LinkChange) -> LogLevel {
        if change.reason == .daemonLost { return .debug }
        return change.to == .failed ? .warning : .info
    }

    /// Records that the streams of a link are silent, or that their values continue.
    private func recordSilence(_ change: LinkChange, of device: String) {
        let isSilent = change.reason == .silent
        let state = isSilent ? "stalled" : "resumed"
        let detail = change.detail
        recorder.record(
            device: device,
            kind: "silence",
            ["state": .text(state), "detail": detail.map { .text($0) }]
        )
        let fields = [LogField("device", device), LogField("state", state)]
        log(isSilent ? .warning : .info, "link state changed", fields + (detail.map { [.init("detail", $0)] } ?? []))
    }

    /// Records that a device was enrolled or dismissed.
    func record(_ device: SupervisedDevice, _ state: String) {
        let address = device.address.description
        recorder.record(device: device.name, kind: "device", ["state": .text(state), "address": .text(address)])
        let fields = [LogField("device", device.name), LogField("state", state), LogField("address", address)]
        log(.notice, "device enrolled or removed", fields)
    }
}

/// Publishes the states of bluetoothd and its adapters.
struct AdapterReporter {
    private let links: LinkReporter
    /// The adapters reported as full.
    private var full: Set<BluetoothAddress> = []

    init(_ links: LinkReporter) {
        self.links = links
    }

    private var status: SupervisorStatus { links.status }

    func record(_ kind: String, state: String, _ detail: String? = nil, level: LogLevel) {
        links.recorder.record(kind: kind, ["state": .text(state), "detail": detail.map { .text($0) }])
        let fields =
            [LogField("part", kind), LogField("state", state)] + (detail.map { [LogField("detail", $0)] } ?? [])
        links.log(level, "bluetooth changed", fields)
    }

    /// Publishes an adapter's state.
    func update(_ adapter: AdapterStatus) {
        let before = status.set(adapter)
        guard before?.isPowered != adapter.isPowered || before?.name != adapter.name else { return }
        record(
            "adapter",
            state: adapter.isPowered ? "on" : "off",
            "\(adapter.name) \(adapter.address)",
            level: adapter.isPowered ? .notice : .warning
        )
    }

    func remove(_ adapter: BluetoothAddress) {
        status.remove(adapter: adapter)
        record("adapter", state: "removed", adapter.description, level: .warning)
    }

    /// Publishes an adapter's report and updates the devices that wait for a slot.
    mutating func publish(_ report: AdapterReport) {
        let before = Set(status.report(of: report.address)?.waiting ?? [])
        status.set(report)
        recordFullness(of: report)
        let detail = fullness(of: report) + "; waits for a free slot"
        for name in report.waiting where !before.contains(name) {
            guard var link = status.link(of: name) else { continue }
            // A device that has just made room keeps that reason.
            guard link.reason != .rotated else { continue }
            (link.reason, link.detail) = (.adapterFull, detail)
            links.update(link)
        }
        for name in before.subtracting(report.waiting).sorted() { clearFullness(of: name) }
    }

    /// Removes the reason of a device that waited for a slot, unless it waits for one of another adapter.
    private func clearFullness(of name: String) {
        guard var link = status.link(of: name), link.reason == .adapterFull, !status.isWaitingForSlot(name) else {
            return
        }
        (link.reason, link.detail) = (nil, nil)
        links.update(link)
    }

    /// Records once that an adapter is full and devices wait, and once that it has room again.
    private mutating func recordFullness(of report: AdapterReport) {
        let isFull = report.isFull && (!report.waiting.isEmpty || full.contains(report.address))
        guard isFull != full.contains(report.address) else { return }
        if isFull { full.insert(report.address) } else { full.remove(report.address) }
        let waiting = report.waiting.joined(separator: ", ")
        let detail = fullness(of: report) + (isFull ? "; waiting: \(waiting)" : "")
        let state = isFull ? "full" : "has room"
        links.recorder.record(kind: "adapter", ["state": .text(state), "detail": .text(detail)])
        links.log(isFull ? .warning : .info, "adapter", [.init("state", state), .init("detail", detail)])
    }

    private func fullness(of report: AdapterReport) -> String {
        let name = status.adapters.first { $0.address == report.address }?.name ?? report.address.description
        return "adapter \(name) holds \(report.links)\(report.slots.map { " of \($0)" } ?? "") links"
    }

    /// Records a recovery step of an adapter.
    func record(_ remedy: RecoveryLadder.Remedy, _ adapter: BluetoothAddress) {
        let (step, symptom) = (remedy.step.rawValue, remedy.symptom.rawValue)
        links.recorder.record(
            kind: "recovery",
            ["adapter": .text(adapter.description), "step": .text(step), "symptom": .text(symptom)]
        )
        links.log(
            remedy.step == .restartDiscovery ? .info : .warning,
            "adapter does not work properly",
            [LogField("adapter", adapter), LogField("step", step), LogField("symptom", symptom)]
        )
    }
}
