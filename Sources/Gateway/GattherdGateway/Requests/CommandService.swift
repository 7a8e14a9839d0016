import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdModel
import GattherdProfiles
import GattherdYAML

/// Executes the requests of the control socket.
struct CommandService: Sendable {
    private let running: RunningConfiguration
    private let supervisor: Supervisor
    private let reporter: StatusReporter
    private let changes: PendingChanges

    init(
        _ running: RunningConfiguration,
        _ supervisor: Supervisor,
        _ reporter: StatusReporter,
        _ changes: PendingChanges
    ) {
        (self.running, self.supervisor, self.reporter, self.changes) = (running, supervisor, reporter, changes)
    }

    /// Carries out a request of the command line and returns the reply.
    func answer(_ call: ControlCall, _ stream: ControlStream) async -> ControlReply {
        let call = call.naming { name(of: $0) }
        do throws(ControlError) {
            switch call {
            case .bonds, .forgetBond:
                return await answerBonds(call)
            case .status:
                return .status(reporter.status)
            case .table, .read, .write, .watch:
                return await supervisor.access.answer(call, stream)
            case .reload:
                return await reloadAnswer()
            case .connect(let device):
                try await supervisor.connect(device)
                return .done("\(device) will be connected")
            case .disconnect(let device):
                try await supervisor.disconnect(device)
                return .done("\(device) will be disconnected, and stays so until: gattherd connect \(device)")
            case .set(let device, let control, let value):
                return await set(control, of: device, to: value)
            }
        } catch {
            return .refused(message(for: error, device: call.device))
        }
    }

    /// Returns the name of the device with this name or address, in any notation; returns other texts unchanged.
    private func name(of target: String) -> String {
        let devices = running.configuration.devices
        guard !devices.contains(where: { $0.name.value == target }),
            let address = BluetoothAddress(anyNotation: target)
        else { return target }
        return devices.first { $0.address.value == address }?.name.value ?? target
    }

    private func reloadAnswer() async -> ControlReply {
        switch await changes.reloaded() {
        case .done(let waiting)?: return .done(ReloadOutcome.done(waiting: waiting).summary)
        case .failed(let reason)?: return .refused(reason)
        case .unread(let reason)?: return .unread(reason)
        case nil: return .refused("the daemon is stopping; try again once it runs")
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
        var request = ControlRequest(device: device, control: control, value: ControlValue(words: text))
        request.isLocal = true
        do throws(ControlError) {
            let value = try await supervisor.controls.set(request).get()
            return .done(value == .trigger ? "\(device): \(control) done" : "\(device) \(control) = \(value)")
        } catch {
            return .refused(message(for: error, device: device))
        }
    }

    private func controls(of device: String) -> [ControlDescriptor] {
        let names = supervisor.status.profiles(of: device)
        return running.registry.profiles.filter { names.contains($0.name) }.flatMap(\.controls)
    }

    /// The message for an error whose device is not known.
    func words(for error: ControlError) -> String { message(for: error, device: nil) }

    /// The message for an error: with the state of the link, or with the name that may have been meant.
    private func message(for error: ControlError, device: String?) -> String {
        switch error {
        case .notReady(let device): return error.words(supervisor.status.link(of: device))
        case .noSuchDevice(let name):
            let names = running.configuration.devices.map(\.name.value)
            return error.words(nil) + (Spelling.nearest(to: name, among: names).map { "; did you mean '\($0)'?" } ?? "")
        case .noSuchControl:
            guard let device else { return error.words(nil) }
            let names = controls(of: device).map(\.name)
            return error.words(nil) + (names.isEmpty ? "; it has none" : "; it has: \(names.joined(separator: ", "))")
        default: return error.words(nil)
        }
    }

    private func answerBonds(_ call: ControlCall) async -> ControlReply {
        do throws(BondError) {
            guard case .forgetBond(let name) = call else { return .bonds(try await supervisor.bonds.list()) }
            try await supervisor.bonds.forget(name)
            return .done("the bond with \(name) is removed; a device may pair again when it is seen")
        } catch {
            return .refused(error.description)
        }
    }
}

extension ControlCall {
    /// The same request with the name of its device.
    ///
    /// Requests about bonds and GATT attributes find their devices themselves.
    fileprivate func naming(_ name: (String) -> String) -> ControlCall {
        switch self {
        case .connect(let device): .connect(device: name(device))
        case .disconnect(let device): .disconnect(device: name(device))
        case .set(let device, let control, let value): .set(device: name(device), control: control, value: value)
        default: self
        }
    }

    /// The device that the call is about, if any.
    fileprivate var device: String? {
        switch self {
        case .connect(let device), .disconnect(let device), .set(let device, _, _): device
        default: nil
        }
    }
}

extension ControlError {
    /// - Parameter link: The state of the device's link, if known.
    /// - Returns: The message. A device that was not asked or did not answer has not refused.
    func words(_ link: LinkStatus?) -> String {
        switch self {
        case .refused(let detail): return detail
        case .timedOut: return "the device did not answer in time"
        case .notReady:
            guard let link else { return description }
            let reason = [link.reason?.words, link.detail].compactMap(\.self).joined(separator: ": ")
            return "\(description): \(link.state.words)" + (reason.isEmpty ? "" : " (\(reason))")
        case .noSuchDevice, .onlyAdvertises, .noSuchControl, .invalidValue, .superseded, .notOwner, .otherEpoch,
            .repeated:
            return description
        }
    }
}
