public import GattherdBluetooth
import GattherdDBus
import GattherdLog

extension BlueZCentral {
    public func answerPairing(with delegate: any PairingDelegate) async {
        pairing.delegate = delegate
        await registerAgent()
    }

    /// Registers our agent with bluetoothd unless it is registered already.
    ///
    /// Our agent becomes the default agent. bluetoothd calls it when a request of ours makes a peripheral pair.
    /// Without an agent that knows our devices, bluetoothd never answers the request.
    func registerAgent() async {
        guard pairing.delegate != nil, let bus, let owner, agentOwner != owner else { return }
        agentOwner = owner
        bus.exportAgent(for: owner) { call in self.assumeIsolated { $0.respond(to: call) } }
        let path = DBusValue.objectPath(DBusConnection.agentPath)
        do throws(DBusError) {
            try await callManager("RegisterAgent", [path, .string("NoInputNoOutput")])
            try await callManager("RequestDefaultAgent", [path])
        } catch {
            log(
                .warning,
                "bluetoothd refused the pairing agent: characteristics that need encryption will not answer",
                [
                    .init("error", error)
                ]
            )
            if agentOwner == owner { agentOwner = nil }
            if error.name == DBusError.timeoutName { Task { await registerAgentLater() } }
        }
    }

    /// Registers the agent again after a timeout: bluetoothd is busy.
    private func registerAgentLater() async {
        if await sleep(for: limits.retry.upperBound) == .deadline { await registerAgent() }
    }

    /// Calls the agent manager; being registered already is success.
    private func callManager(_ member: String, _ arguments: [DBusValue]) async throws(DBusError) {
        do throws(DBusError) {
            try await call("/org/bluez", BlueZ.agentManager, member, arguments)
        } catch  where error.name == "org.bluez.Error.AlreadyExists" {
            return
        }
    }

    /// Answers a request of bluetoothd's.
    private func respond(to call: AgentCall) -> PairingResponse {
        guard let id = tree.devices[call.path].flatMap({ tree.id(of: $0) }) else {
            return .rejected("the peripheral is unknown")
        }
        let response = pairing.respond(to: call.request, from: id, isActive: activePeripherals.contains(id))
        log(
            .debug,
            "pairing request answered",
            [
                .init("peripheral", id.address), .init("request", call.request.rawValue),
                .init("response", "\(response)"),
            ]
        )
        return response
    }

    // MARK: - Pairings that we request

    public func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) {
        let path = try devicePath(peripheral)
        // BlueZ 5.66 never answers a second `Pair`.
        guard try !status(peripheral).isPaired else { return }
        guard pairing.begin(peripheral, by: method) else { throw BluetoothError(.busy, "a pairing is under way") }
        defer { pairing.end(peripheral) }
        do throws(DBusError) {
            try await requestPairing(peripheral, path, by: method, within: timeout)
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        _ = try? await refresh(path, within: limits.operation)
        try await checkPasskey(of: peripheral)
    }

    /// Requests the pairing on a connection of its own, whose agent has the capability of the method.
    private func requestPairing(
        _ peripheral: PeripheralID,
        _ path: String,
        by method: PairingMethod,
        within timeout: Duration
    ) async throws(DBusError) {
        guard let owner else { throw DBusError(name: DBusError.disconnectedName, message: "bluetoothd is gone") }
        let connection = try await DBusConnection.open(address, on: loop)
        pairing.setConnection(connection, of: peripheral)
        let result: Result<Void, DBusError>
        do throws(DBusError) {
            connection.exportAgent(for: owner) { call in self.assumeIsolated { $0.respond(to: call) } }
            let arguments = [DBusValue.objectPath(DBusConnection.agentPath), .string(method.capability)]
            let manager = BlueZ.agentManager
            try await connection.call(
                owner,
                "/org/bluez",
                manager,
                "RegisterAgent",
                arguments,
                timeout: limits.operation
            )
            try await connection.call(owner, path, BlueZ.device, "Pair", timeout: timeout)
            result = .success(())
        } catch  where error.name == "org.bluez.Error.AlreadyExists" {
            result = .success(())
        } catch {
            result = .failure(error)
        }
        // bluetoothd cancels a pairing whose client leaves.
        await connection.close()
        try result.get()
    }

    /// Cancels the pairings that we requested.
    func cancelPairings() async {
        for connection in pairing.connections { await connection.close() }
    }

    /// Forgets a peripheral that paired without its passkey: an attacker could have answered in its place.
    private func checkPasskey(of peripheral: PeripheralID) async throws(BluetoothError) {
        guard pairing.hasSkippedPasskey(peripheral) else { return }
        // A cancelled task could not call any more.
        await Task { try? await forget(peripheral) }.value
        throw BluetoothError(.authentication, "the peripheral paired without its passkey, and was removed")
    }

    public func bonds() async throws(BluetoothError) -> [Bond] {
        _ = try service()
        return tree.devices.values.compactMap { device in tree.id(of: device).map { device.bond($0) } }
            .sorted { ($0.peripheral.address, $0.peripheral.adapter) < ($1.peripheral.address, $1.peripheral.adapter) }
    }
}

extension PairingMethod {
    /// BlueZ's name of a host that can do exactly this.
    fileprivate var capability: String {
        switch self {
        case .justWorks: "NoInputNoOutput"
        case .passkey: "KeyboardOnly"
        case .compare: "DisplayYesNo"
        }
    }
}
