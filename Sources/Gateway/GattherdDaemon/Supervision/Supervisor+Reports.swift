import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

extension ProfileAssignment {
    fileprivate func description(of device: SupervisedDevice) -> DeviceDescription {
        DeviceDescription(
            device: device.name,
            address: device.address.description,
            streams: streams.map { .init(name: $0.name, metrics: $0.descriptor.metrics) },
            controls: controls.map(\.descriptor)
        )
    }
}

extension Supervisor {
    /// Handles a link session's progress.
    func report(_ progress: LinkSessionProgress, of device: SupervisedDevice, link: PeripheralID, ticket: Int) {
        switch progress {
        case .discovered:
            send(.link(device: device.name, .discovered(ticket: ticket)))
        case .prepared(let plan):
            controls.open(device: device.name, plan.controls)
            plans.withLock { $0[device.name] = plan }
            board.setProfiles(plan.profiles.map(\.name), of: device.name)
            announcer?.describe(plan.description(of: device))
            send(.link(device: device.name, .prepared(ticket: ticket)))
        case .stalled(let detail):
            send(.link(device: device.name, .stalled(detail: detail, ticket: ticket)))
        case .resumed:
            send(.link(device: device.name, .resumed(ticket: ticket)))
        case .failed(let fault):
            send(.link(device: device.name, .failed(fault, ticket: ticket)))
        }
    }

    /// Publishes a link's new state.
    func publish(_ status: LinkStatus, _ change: LinkChange) {
        board.set(status)
        announcer?.update(status)
        guard !change.isWithinState else { return record(change, of: status.device) }
        recorder.record(
            device: status.device,
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
            LogField("device", status.device), LogField("from", change.from.rawValue),
            LogField("to", change.to.rawValue),
        ]
        if let reason = change.reason { fields.append(.init("reason", reason.rawValue)) }
        if let detail = change.detail { fields.append(.init("detail", detail)) }
        log(change.to == .failed ? .warning : .info, "link", fields)
    }

    /// Records a change within a link's state.
    private func record(_ change: LinkChange, of device: String) {
        let state = change.reason == .silent ? "stalled" : "resumed"
        let detail = change.detail
        recorder.record(
            device: device,
            kind: "silence",
            ["state": .text(state), "detail": detail.map { .text($0) }]
        )
        let fields = [LogField("device", device), LogField("state", state)]
        log(change.reason == .silent ? .warning : .info, "link", fields + (detail.map { [.init("detail", $0)] } ?? []))
    }
}
