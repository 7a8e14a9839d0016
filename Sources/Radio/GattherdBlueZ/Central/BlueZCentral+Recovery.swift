public import GattherdBluetooth
import GattherdDBus
public import GattherdGATT

extension BlueZCentral {
    public func setPowered(_ isPowered: Bool, adapter: BluetoothAddress) async throws(BluetoothError) {
        let path = try adapterPath(adapter)
        let arguments: [DBusValue] = [.string(BlueZ.adapter), .string("Powered"), .variant(.boolean(isPowered))]
        do throws(DBusError) {
            try await call(path, BlueZ.properties, "Set", arguments)
        } catch {
            throw BluetoothError(error, missing: .adapterUnavailable)
        }
    }

    public func renewSession() async {
        guard !isClosed, !isRenewing, let bus else { return }
        isRenewing = true
        becomeUnavailable("the connection to bluetoothd is renewed")
        await closeSockets()
        await bus.close()
    }

    /// Calls a silent bluetoothd from time to time, and renews the connection when it does not answer.
    ///
    /// A bluetoothd that hangs keeps its name and its sockets: while all devices are ready nothing else shows it.
    func superviseBluetoothd(on bus: DBusConnection) async {
        var misses = 0
        while await sleep(for: misses == 0 ? limits.livenessInterval : limits.operation) == .deadline,
            bus === self.bus
        {
            guard let owner, isLoaded, !hasReceived else {
                (hasReceived, misses) = (false, 0)
                continue
            }
            misses = await isAlive(owner, bus, within: limits.operation) ? 0 : misses + 1
            guard misses == Self.mostMisses else { continue }
            log(.warning, "bluetoothd does not answer: the connection to it is renewed")
            return await renewSession()
        }
    }

    public func isResponsive() async -> Bool {
        if let livenessCheck { return await livenessCheck.value }
        guard let owner, let bus, isLoaded else { return true }
        let check = Task { await isAlive(owner, bus, within: limits.livenessCheck) }
        livenessCheck = check
        let hasAnswered = await check.value
        livenessCheck = nil
        // A bluetoothd that was replaced meanwhile is known to be away.
        return hasAnswered || owner != self.owner
    }

    /// Returns true if bluetoothd answers, also by an error.
    private func isAlive(_ owner: String, _ bus: DBusConnection, within limit: Duration) async -> Bool {
        do throws(DBusError) {
            try await bus.call(owner, "/", "org.freedesktop.DBus.Peer", "Ping", timeout: limit)
            return true
        } catch {
            return error.name != DBusError.timeoutName
        }
    }

    /// Renews the connection when too many calls are unanswered.
    ///
    /// bluetoothd never answers some calls, for example a read whose pairing is refused. The bus counts them for as
    /// long as the connection lasts, and refuses further calls when they are too many.
    func renewAfterUnansweredCalls(_ bus: DBusConnection) async {
        guard bus === self.bus, !isRenewing, await bus.owedAnswers >= limits.unansweredCalls else { return }
        log(.warning, "bluetoothd left too many calls unanswered: the connection to it is renewed")
        Task { await renewSession() }
    }

    public func catchUp(within limit: Duration) async {
        let deadline = SuspendingClock.now + limit
        for _ in 0..<Self.catchUpRounds {
            let rest = deadline - SuspendingClock.now
            guard isLoaded, rest > .zero else { return }
            _ = try? await call("/", "org.freedesktop.DBus.Peer", "Ping", within: rest)
        }
        for channel in subscriptions.all { channel.socket?.receiveWaiting() }
    }
}
