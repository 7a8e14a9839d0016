import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// The advertisements to report, and the last one of each device.
///
/// In busy air nearly all signals repeat the last advertisement of their device. They are recognized by their bytes, and
/// nothing is decoded.
struct AdvertisementReports {
    /// A device's last advertisement, as its repetitions are reported.
    private final class Last {
        let changes: RecordedChanges
        let repetition: Repetition

        init(_ changes: RecordedChanges, _ repetition: Repetition) {
            (self.changes, self.repetition) = (changes, repetition)
        }
    }

    /// A signal that repeats the last advertisement of a device.
    struct Repetition {
        let device: DeviceObject
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
    func includes(_ id: PeripheralID, _ device: DeviceObject) -> Bool {
        guard let watch else { return false }
        let isResolvable = watch.includesResolvable && device.hasPrivateAddress && id.address.isResolvable
        return watch.includesAll || isResolvable || watch.addresses.contains(id.address)
    }

    /// True if each advertisement of a peripheral is an event as well.
    func isPrompt(_ id: PeripheralID) -> Bool { watch?.promptAddresses?.contains(id.address) ?? true }

    // MARK: - Repetitions

    /// Returns `nil` for a signal that does not repeat the last advertisement of its device.
    func repetition(in signal: borrowing DBusSignal) -> Repetition? {
        guard let last = last.value(for: signal), let found = last.changes.repetition(in: signal) else { return nil }
        var repetition = last.repetition
        repetition.advertisement.rssi = found.value.map { Int($0) }
        if found.isAlone { repetition.advertisement.frames = [] }
        return repetition
    }

    /// Records the last advertisement of a device, with the frames of a repetition.
    ///
    /// - Parameters:
    ///   - advertisement: The advertisement.
    ///   - isWatched: True if the watch includes it.
    ///   - device: The device.
    ///   - signal: The signal that has reported it.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        isWatched: Bool,
        of device: DeviceObject,
        from signal: borrowing DBusSignal
    ) {
        let repetition = Repetition(device: device, advertisement: advertisement, isWatched: isWatched)
        let changes = RecordedChanges(signal, of: BlueZ.device, variable: "RSSI")
        last[signal.path] = changes.map { Last($0, repetition) }
    }

    /// Forgets the advertisement of a device that has changed.
    mutating func forget(_ path: String) {
        last[path] = nil
    }

    mutating func forgetAll() {
        last = DBusPathTable()
    }
}
