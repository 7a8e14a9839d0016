import GattherdBluetooth
import GattherdDBus
import GattherdSync

/// The requests of notifications, by signals or by a socket; on the Bluetooth thread only.
final class NotificationStarter {
    private let client: BluetoothdClient
    private let acquirer: SocketAcquirer
    private let sequencer: SignalSequencer
    private let sockets: NotificationSockets

    init(
        _ client: BluetoothdClient,
        _ acquirer: SocketAcquirer,
        _ sequencer: SignalSequencer,
        _ sockets: NotificationSockets
    ) {
        (self.client, self.acquirer, self.sequencer, self.sockets) = (client, acquirer, sequencer, sockets)
    }

    // MARK: - Signals

    /// Requests signals: values may come before the answer, and an existing session is success.
    func startNotify(_ channel: NotificationChannel) async throws(BluetoothError) {
        channel.takesSignals = true
        askForOtherSubscribers(channel)
        channel.isStarting = true
        do throws(DBusError) {
            try await client.call(
                channel.path,
                BlueZ.characteristic,
                "StartNotify",
                within: client.attributeLimit,
                onReply: { [weak channel, path = channel.path, sequencer, acquirer] outcome in
                    channel?.isStarting = false
                    guard case .success = outcome else { return }
                    acquirer.recordAcceptance(path)
                    channel?.recordStart(at: sequencer.gaps)
                }
            )
        } catch  where error.name == "org.bluez.Error.InProgress" {
            // The session has outlived the last link.
            acquirer.recordAcceptance(channel.path)
        } catch {
            throw acquirer.explain(BluetoothError(error, missing: .unknownAttribute), at: channel.path)
        }
    }

    /// Finds out whether another client has notifications already.
    private func askForOtherSubscribers(_ channel: NotificationChannel) {
        let property: [DBusValue] = [.string(BlueZ.characteristic), .string("Notifying")]
        client.ask(channel.path, BlueZ.properties, "Get", property) { [weak channel, sequencer] outcome in
            let isQuiet = (try? outcome.get().first?.bool) == false
            channel?.recordQuiet(at: isQuiet ? sequencer.gaps : nil)
        }
    }

    // MARK: - Sockets

    /// Requests a socket.
    ///
    /// BlueZ up to 5.83 never answers when the peripheral refuses, see ``NotifyRequests``.
    func acquireNotify(_ channel: NotificationChannel) async throws(BluetoothError) -> DBusDescriptor {
        let descriptor: DBusDescriptor?
        do throws(BluetoothError) {
            descriptor = try await acquirer.acquire("AcquireNotify", channel.path, of: channel.peripheral)
        } catch {
            throw acquirer.explain(error, at: channel.path)
        }
        acquirer.recordAcceptance(channel.path)
        guard let descriptor else { throw BluetoothError(.other, "AcquireNotify returned no socket") }
        return descriptor
    }

    /// Reads a socket from now on; calls `ended` when its other end was closed.
    func open(
        _ descriptor: DBusDescriptor,
        for channel: NotificationChannel,
        ended: @escaping (NotificationChannel) -> Void
    ) throws(BluetoothError) {
        do throws(WatchError) {
            let socket = try sockets.open(
                descriptor,
                deliver: { [unowned channel] octets, time in channel.deliver(octets, at: time) },
                ended: { [weak channel] in channel.map(ended) }
            )
            channel.replaceSocket(by: socket)
        } catch {
            throw BluetoothError(.other, error.description)
        }
    }
}
