import GattherdBluetooth
import GattherdLog
import GattherdModel
import GattherdSync

/// The streams of a link whose notifications bluetoothd refuses because it never answered an earlier request.
///
/// Only BlueZ's removal of the peripheral, or a restart of bluetoothd, ends that. A removal would delete a bond too.
struct StuckNotifications: Sendable {
    private struct Shared: Sendable {
        /// True once the peripheral must be removed from BlueZ after the link.
        var needsRemoval = false
        /// The streams with a subscription that the device has accepted.
        var accepted: Set<String> = []
    }

    private let link: ServedLink
    private let shared = Locked(Shared())

    init(_ link: ServedLink) {
        self.link = link
    }

    /// Returns true if the subscription of a stream may use a socket.
    func allowsSocket(_ stream: String) -> Bool {
        link.context.catalogue.allowsSocket(device: link.device.name, stream: stream)
    }

    /// Records that the device has accepted a subscription: the next link may use a socket for it.
    func recordSuccess(of stream: String) {
        shared.withLock { _ = $0.accepted.insert(stream) }
    }

    /// Records a failed subscription; fails the link if the removal of the peripheral makes the next one possible.
    ///
    /// The next subscription uses signals: bluetoothd reports it if the device refuses that too.
    func record(_ error: BluetoothError, of stream: String, while action: String) throws(LinkFault) {
        guard error.kind == .notificationsStuck else { return }
        link.context.catalogue.forbidSocket(device: link.device.name, stream: stream)
        guard !link.context.bonds.isPaired(link.peripheral) else { return }
        shared.withLock { $0.needsRemoval = true }
        throw LinkFault(.gattError, "\(action): \(error.detail); gattherd removes it, and connects it again")
    }

    /// Prepares the next link; removes the peripheral from BlueZ if needed, unless it has a bond.
    func endLink() async {
        let (needsRemoval, accepted) = shared.withLock { ($0.needsRemoval, $0.accepted) }
        link.context.catalogue.allowSockets(device: link.device.name, streams: accepted)
        guard needsRemoval else { return }
        do throws(BluetoothError) {
            let known = try await link.central.bonds().first { $0.peripheral == link.peripheral }
            guard known?.isPaired != true, known?.isBonded != true else { return }
            try await link.central.forget(link.peripheral)
        } catch {
            link.log(.warning, "the device could not be removed from BlueZ", [.init("error", error.detail)])
        }
    }
}
