import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdGATT
import GattherdHistory
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdProfiles

extension Composition {
    /// Does what the command line asks for.
    func answer(_ call: ControlCall) async -> ControlReply {
        do throws(ControlError) {
            switch call {
            case .bonds, .forgetBond:
                return await answerBonds(call)
            case .status:
                return .status(status)
            case .reload:
                return await reloadAnswer()
            case .connect(let device):
                try await gateway.herd.connect(device)
                return .done("\(device) will be connected")
            case .disconnect(let device):
                try await gateway.herd.disconnect(device)
                return .done("\(device) will be disconnected, and stays so until: gattherd connect \(device)")
            case .set(let device, let control, let value):
                return await set(control, of: device, to: value)
            }
        } catch {
            return .refused(message(for: error, device: call.device))
        }
    }

    private func reloadAnswer() async -> ControlReply {
        switch await changes.reloaded() {
        case .done(let waiting)?: return .done(ReloadOutcome.done(waiting: waiting).summary)
        case .failed(let reason)?: return .refused(reason)
        case nil: return .refused("the daemon ends")
        }
    }

    /// Sets a control.
    ///
    /// MQTT may send any payload to a trigger; a value on the command line is a mistake.
    private func set(_ control: String, of device: String, to text: String) async -> ControlReply {
        let kind = controls(of: device).first { $0.name == control }?.kind
        if let kind, kind == .trigger, !text.isEmpty {
            return .refused("\(control) takes no value; leave out '\(text.cut(toBytes: 200))'")
        }
        if let kind, kind != .trigger, text.isEmpty {
            return .refused("\(control) needs a value: \(kind.expectation)")
        }
        let request = ControlRequest(device: device, control: control, value: ControlValue(words: text))
        do throws(ControlError) {
            let value = try await gateway.herd.controls.set(request).get()
            return .done(value == .trigger ? "\(device): \(control) done" : "\(device) \(control) = \(value)")
        } catch {
            return .refused(message(for: error, device: device))
        }
    }

    private func controls(of device: String) -> [ControlDescriptor] {
        let names = gateway.herd.board.profiles(of: device)
        return registry.profiles.filter { names.contains($0.name) }.flatMap(\.controls)
    }

    func words(for error: ControlError) -> String { message(for: error, device: nil) }

    /// The message for an error: with the state of the link, or with the name that may have been meant.
    private func message(for error: ControlError, device: String?) -> String {
        switch error {
        case .notReady(let device): return error.words(gateway.herd.board.status(of: device))
        case .noSuchDevice(let name):
            let names = configuration.devices.map(\.name.value)
            return error.words(nil) + (Spelling.nearest(to: name, among: names).map { "; did you mean '\($0)'?" } ?? "")
        case .noSuchControl:
            guard let device else { return error.words(nil) }
            let names = controls(of: device).map(\.name)
            return error.words(nil) + (names.isEmpty ? "; it has none" : "; it has: \(names.joined(separator: ", "))")
        default: return error.words(nil)
        }
    }

    /// How everything is.
    var status: DaemonStatus {
        var status = DaemonStatus(
            version: GattherdVersion.current,
            gateway: configuration.gateway,
            started: started,
            history: historyStatus
        )
        status.adapters = gateway.herd.board.adapters.map(adapterStatus)
        status.devices = gateway.herd.devices.compactMap(deviceStatus)
        status.delivery = deliveryStatus
        status.configuration = reloadState.status
        status.dropped = gateway.intake.dropped.value
        return status
    }

    private var historyStatus: DaemonStatus.History {
        let state = history.status
        var status = DaemonStatus.History(at: configuration.history.path.value, seq: history.newestSeq)
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
        guard let report = gateway.herd.board.report(of: adapter.address) else { return status }
        status.links = report.links
        status.slots = report.slots
        status.connecting = report.attempts
        status.waiting = report.waiting.count
        status.lastRecovery = report.lastRemedy?.step.rawValue
        return status
    }

    private func deviceStatus(_ device: SupervisedDevice) -> DaemonStatus.Device? {
        guard let link = gateway.herd.board.status(of: device.name) else { return nil }
        let profiles = gateway.herd.board.profiles(of: device.name)
        var status = DaemonStatus.Device(link, address: device.address.description, profiles: profiles)
        status.readings = device.meter.readings
        status.rejects = device.meter.rejects
        let undecodable = device.meter.undecodable.map { "\($0.stream): \($0.reason)" }
        status.undecodable = undecodable.isEmpty ? nil : undecodable
        status.lastReading = device.meter.lastReading?.rfc3339
        let sighting = gateway.herd.board.lastSighting(of: device.name)
        status.lastHeard = sighting?.time.rfc3339
        status.rssi = sighting?.rssi ?? status.rssi
        return status
    }

    private var deliveryStatus: DaemonStatus.Delivery? {
        guard let delivery, let broker = configuration.mqtt?.broker else { return nil }
        let status = delivery.status
        return .init(
            state: status.session.word,
            at: broker.description,
            backlog: status.backlog,
            published: delivery.counters.published.value,
            error: status.session == .connected ? status.pause?.words ?? status.refusedTopics : status.lastError
        )
    }

    /// The retained `bridge/info`.
    func bridgeInfo(_ configuration: Configuration, _ registry: ProfileRegistry) -> [UInt8] {
        JSONWriter.octets { writer in
            writer.beginObject()
            writer.key("version")
            writer.string(GattherdVersion.current)
            writer.key("gateway")
            writer.string(configuration.gateway)
            writer.key("started")
            writer.timestamp(started)
            writer.key("profiles")
            writer.beginArray()
            for profile in registry.profiles { writer.string(profile.name) }
            writer.endArray()
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

extension ControlCall {
    /// The device that the call is about, if any.
    fileprivate var device: String? {
        switch self {
        case .connect(let device), .disconnect(let device), .set(let device, _, _): device
        default: nil
        }
    }
}

extension DeliveryStatus {
    /// The topics that are set aside, for people.
    fileprivate var refusedTopics: String? {
        guard let first = refusals.first else { return nil }
        let others = refusals.count > 1 ? " and \(refusals.count - 1) more" : ""
        return "refuses '\(first.topic)'\(others) (\(first.reason)); allow our user to use the gateway's topics"
    }
}

extension DeliveryMachine.Session {
    /// One word for people.
    var word: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .connected: "connected"
        case .backingOff: "waiting to reconnect"
        case .stopping: "stopping"
        case .stopped: "stopped"
        }
    }
}

extension DeliveryMachine.Pause {
    /// The reason in words, behind "connected: ".
    var words: String {
        switch self {
        case .settling: "waiting a moment for subscribers to return"
        case .awaitingSubscribers: "waiting for subscribers to return, some seconds at most"
        case .busy: "waiting for a busy broker"
        }
    }
}

extension ControlValue {
    /// Reads what a person wrote: a number, true or false, else text; nothing is a trigger.
    init(words: String) {
        if words.isEmpty {
            self = .trigger
        } else if let number = Int64(words) {
            self = .integer(number)
        } else if let number = Double(words), number.isFinite {
            self = .real(number)
        } else {
            self = Bool(words).map { .boolean($0) } ?? .text(words)
        }
    }
}

extension ControlError {
    /// - Parameter link: The device's, where it is known.
    /// - Returns: What a person is told. A device that was not asked, or said nothing, has not refused.
    func words(_ link: LinkStatus?) -> String {
        switch self {
        case .refused(let detail): return detail
        case .timedOut: return "the device did not answer in time"
        case .notReady:
            guard let link else { return description }
            let reason = [link.reason?.words, link.detail].compactMap(\.self).joined(separator: ": ")
            return "\(description): \(link.state.words)" + (reason.isEmpty ? "" : " (\(reason))")
        case .noSuchDevice, .onlyAdvertises, .noSuchControl, .invalidValue, .superseded: return description
        }
    }
}
