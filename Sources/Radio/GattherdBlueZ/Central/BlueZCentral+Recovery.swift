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
        becomeUnavailable("the session with bluetoothd is renewed")
        await closeSockets()
        await bus.close()
    }

    /// Asks a bluetoothd that says nothing whether it lives, and comes back as a new client when it does not answer.
    ///
    /// One that hangs keeps its name and its sockets: while all devices are ready nothing else would tell.
    func watchOver(_ bus: DBusConnection) async {
        var misses = 0
        while await sleep(for: misses == 0 ? limits.silence : limits.operation) == .deadline, bus === self.bus {
            guard let owner, isLoaded, !wasHeard else {
                (wasHeard, misses) = (false, 0)
                continue
            }
            misses = await isAlive(owner, bus, within: limits.operation) ? 0 : misses + 1
            guard misses == 2 else { continue }
            log(.warning, "bluetoothd does not answer: the session with it is renewed")
            return await renewSession()
        }
    }

    public func isResponsive() async -> Bool {
        if let lifeCheck { return await lifeCheck.value }
        guard let owner, let bus, isLoaded else { return true }
        let check = Task { await isAlive(owner, bus, within: limits.signOfLife) }
        lifeCheck = check
        let hasAnswered = await check.value
        lifeCheck = nil
        // One that was replaced meanwhile is known to be away.
        return hasAnswered || owner != self.owner
    }

    /// An error is an answer, too.
    private func isAlive(_ owner: String, _ bus: DBusConnection, within limit: Duration) async -> Bool {
        do throws(DBusError) {
            try await bus.call(owner, "/", "org.freedesktop.DBus.Peer", "Ping", timeout: limit)
            return true
        } catch {
            return error.name != DBusError.timeoutName
        }
    }

    /// bluetoothd never answers some calls, a read that needs a pairing that is refused for one; the bus counts them for as
    /// long as the connection lasts, and takes no more calls when they are too many.
    func renewIfOwedTooMuch(_ bus: DBusConnection) async {
        guard bus === self.bus, !isRenewing, await bus.owedAnswers >= limits.owedAnswers else { return }
        log(.warning, "bluetoothd owes too many answers: the session with it is renewed")
        Task { await renewSession() }
    }
}
