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

    /// bluetoothd never answers some calls, a read that needs a pairing that is refused for one; the bus counts them for as
    /// long as the connection lasts, and takes no more calls when they are too many.
    func renewIfOwedTooMuch(_ bus: DBusConnection) async {
        guard bus === self.bus, !isRenewing, await bus.owedAnswers >= limits.owedAnswers else { return }
        log(.warning, "bluetoothd owes too many answers: the session with it is renewed")
        Task { await renewSession() }
    }
}
