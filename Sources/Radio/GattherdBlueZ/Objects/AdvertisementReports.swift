import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// The advertisements to report, and the last one of each device.
///
/// In busy air nearly all signals repeat the last advertisement of their device. They are recognized by their bytes, and
/// nothing is decoded.
struct AdvertisementReports {
    /// A device's last advertisement, as its repetitions are reported.
    private final class Last: Sendable {
        let path: String
        let changes: RecordedChanges
        let advertisement: HeardAdvertisement
        let isWatched: Bool

        init(_ path: String, _ changes: RecordedChanges, _ advertisement: HeardAdvertisement, isWatched: Bool) {
            (self.path, self.changes) = (path, changes)
            (self.advertisement, self.isWatched) = (advertisement, isWatched)
        }
    }

    /// A signal that repeats the last advertisement of a device.
    struct Repetition {
        let path: String
        /// The advertisement; its strength is `nil` if the signal does not state it.
        var advertisement: HeardAdvertisement
        let isWatched: Bool
    }

    /// The watched advertisements; `nil` for none.
    var watch: AdvertisementWatch? {
        didSet { last = DBusPathTable() }
    }
    private var last = DBusPathTable<Last>()

    /// True if the watch includes the advertisements of a peripheral.
    func includes(_ id: PeripheralID, hasPrivateAddress: Bool) -> Bool {
        guard let watch else { return false }
        let isResolvable = watch.includesResolvable && hasPrivateAddress && id.address.isResolvable
        return watch.includesAll || isResolvable || watch.addresses.contains(id.address)
    }

    /// True if each advertisement of a peripheral is an event as well.
    func isPrompt(_ id: PeripheralID) -> Bool { watch?.promptAddresses?.contains(id.address) ?? true }

    // MARK: - Repetitions

    /// Returns `nil` for a signal that does not repeat the last advertisement of its device.
    func repetition(in signal: borrowing DBusSignal) -> Repetition? {
        guard let last = last.value(for: signal), let found = last.changes.repetition(in: signal) else { return nil }
        var advertisement = last.advertisement
        advertisement.rssi = found.value.map { Int($0) }
        if found.isAlone { advertisement.frames = [] }
        return Repetition(path: last.path, advertisement: advertisement, isWatched: last.isWatched)
    }

    /// Records the last advertisement of a device, with the frames of a repetition.
    ///
    /// - Parameters:
    ///   - isWatched: True if the watch includes it.
    ///   - signal: The signal that has reported it.
    mutating func record(_ advertisement: HeardAdvertisement, isWatched: Bool, from signal: borrowing DBusSignal) {
        let path = signal.path
        let changes = RecordedChanges(signal, of: BlueZ.device, variable: "RSSI")
        last[path] = changes.map { Last(path, $0, advertisement, isWatched: isWatched) }
    }

    /// Forgets the advertisement of a device that has changed.
    mutating func forget(_ path: String) {
        last[path] = nil
    }

    mutating func forgetAll() {
        last = DBusPathTable()
    }
}
