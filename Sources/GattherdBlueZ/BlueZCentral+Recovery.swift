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
        guard !isClosed, let bus else { return }
        isRenewing = true
        becomeUnavailable("the session with bluetoothd is renewed")
        await closeSockets()
        await bus.close()
    }
}
