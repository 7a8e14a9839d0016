public import GattherdBluetooth
import GattherdDBus
import GattherdLog

/// A pairing that we asked for.
struct PairingAttempt {
    let method: PairingMethod
    /// Our other connection to the bus, on which it is asked for.
    var errand: DBusConnection?
    /// True once the passkey was asked for.
    var isProven = false
}

extension BlueZCentral {
    public func answerPairing(with delegate: any PairingDelegate) async {
        pairingDelegate = delegate
        await registerAgent()
    }

    /// Registers our agent with a bluetoothd that does not know it yet.
    ///
    /// It becomes the default one, because bluetoothd asks that one when a peripheral's answer to a request of ours
    /// makes it pair; without any, or with one that does not know our devices, the request is never answered.
    func registerAgent() async {
        guard pairingDelegate != nil, let bus, let owner, agentOwner != owner else { return }
        agentOwner = owner
        bus.exportAgent(for: owner) { call in self.assumeIsolated { $0.decide(call) } }
        let path = DBusValue.objectPath(DBusConnection.agentPath)
        do throws(DBusError) {
            try await callManager("RegisterAgent", [path, .string("NoInputNoOutput")])
            try await callManager("RequestDefaultAgent", [path])
        } catch {
            log(
                .warning,
                "bluetoothd takes no pairing agent: what needs encryption will not answer",
                [
                    .init("error", error)
                ]
            )
            if agentOwner == owner { agentOwner = nil }
            if error.name == DBusError.timeoutName { Task { await registerAgentLater() } }
        }
    }

    /// bluetoothd has much to do.
    private func registerAgentLater() async {
        if await sleep(for: limits.retry.upperBound) == .deadline { await registerAgent() }
    }

    /// Having done so already is success.
    private func callManager(_ member: String, _ arguments: [DBusValue]) async throws(DBusError) {
        do throws(DBusError) {
            try await call("/org/bluez", BlueZ.agentManager, member, arguments)
        } catch  where error.name == "org.bluez.Error.AlreadyExists" {
            return
        }
    }

    /// Answers bluetoothd: for a pairing that we asked for as asked, else as the delegate says.
    private func decide(_ call: AgentCall) -> PairingResponse {
        guard let peripheral = tree.devices[call.path].flatMap({ tree.id(of: $0) }) else {
            return .rejected("it is not known")
        }
        let answer = answer(call.question, from: peripheral)
        log(
            .debug,
            "a peripheral pairs",
            [
                .init("peripheral", peripheral.address), .init("question", call.question.rawValue),
                .init("answer", "\(answer)"),
            ]
        )
        return answer
    }

    private func answer(_ question: PairingRequest, from peripheral: PeripheralID) -> PairingResponse {
        if let method = pairings[peripheral]?.method {
            let answer = method.answer(to: question)
            if case .passkey = answer { pairings[peripheral]?.isProven = true }
            return answer
        }
        guard engaged.contains(peripheral) else { return .rejected("it is not being connected") }
        return pairingDelegate?.answer(question, from: peripheral) ?? .rejected("nobody answers")
    }

    // MARK: - Pairing on purpose

    public func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) {
        let path = try devicePath(peripheral)
        // BlueZ 5.66 never answers a second `Pair`.
        guard try !status(peripheral).isPaired else { return }
        guard pairings[peripheral] == nil else { throw BluetoothError(.busy, "a pairing is under way") }
        pairings[peripheral] = PairingAttempt(method: method)
        defer { pairings[peripheral] = nil }
        do throws(DBusError) {
            try await requestPairing(peripheral, path, by: method, within: timeout)
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        _ = try? await refresh(path, within: limits.operation)
        try await checkProof(of: peripheral)
    }

    /// Asks on a connection of its own: bluetoothd asks back there, and its agent's capability is that of the method.
    private func requestPairing(
        _ peripheral: PeripheralID,
        _ path: String,
        by method: PairingMethod,
        within timeout: Duration
    ) async throws(DBusError) {
        guard let owner else { throw DBusError(name: DBusError.disconnectedName, message: "bluetoothd is gone") }
        let errand = try await DBusConnection.open(address, on: loop)
        pairings[peripheral]?.errand = errand
        let result: Result<Void, DBusError>
        do throws(DBusError) {
            errand.exportAgent(for: owner) { call in self.assumeIsolated { $0.decide(call) } }
            let arguments = [DBusValue.objectPath(DBusConnection.agentPath), .string(method.capability)]
            let manager = BlueZ.agentManager
            try await errand.call(
                owner,
                "/org/bluez",
                manager,
                "RegisterAgent",
                arguments,
                timeout: limits.operation
            )
            try await errand.call(owner, path, BlueZ.device, "Pair", timeout: timeout)
            result = .success(())
        } catch  where error.name == "org.bluez.Error.AlreadyExists" {
            result = .success(())
        } catch {
            result = .failure(error)
        }
        // To bluetoothd, that also cancels what is under way.
        await errand.close()
        try result.get()
    }

    /// Gives up the pairings that are under way.
    func abandonPairings() async {
        for pairing in pairings.values { await pairing.errand?.close() }
    }

    /// Somebody in between could have said that the peripheral has no passkey.
    private func checkProof(of peripheral: PeripheralID) async throws(BluetoothError) {
        guard let pairing = pairings[peripheral], case .passkey = pairing.method, !pairing.isProven else { return }
        // Who is cancelled could not call any more.
        await Task { try? await forget(peripheral) }.value
        throw BluetoothError(.authentication, "it paired without asking for its passkey, and was forgotten")
    }

    public func bonds() async throws(BluetoothError) -> [Bond] {
        _ = try service()
        return tree.devices.values.compactMap { device in tree.id(of: device).map { device.bond($0) } }
            .sorted { ($0.peripheral.address, $0.peripheral.adapter) < ($1.peripheral.address, $1.peripheral.adapter) }
    }
}

extension PairingMethod {
    /// What BlueZ calls a host that can do this, and no more.
    fileprivate var capability: String {
        switch self {
        case .justWorks: "NoInputNoOutput"
        case .passkey: "KeyboardOnly"
        case .compare: "DisplayYesNo"
        }
    }
}
