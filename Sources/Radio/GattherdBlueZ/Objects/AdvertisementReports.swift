import GattherdBluetooth
import GattherdDBus
import GattherdGATT

/// The advertisements to report, and the last one of each device.
///
/// In busy air nearly all signals repeat the last advertisement of their device. They are recognized by their bytes, so
/// nothing is decoded.
struct AdvertisementReports {
    /// The consumers of a peripheral's advertisements.
    struct Audience {
        /// True if the watch includes them.
        let isWatched: Bool
        /// True if each of them is an event as well.
        let isPrompt: Bool
    }

    /// A device's last advertisement.
    final class Last {
        let device: DeviceObject
        /// The advertisement, with the frames of a repetition.
        let advertisement: HeardAdvertisement
        /// The advertisement if only its strength was signalled.
        private(set) lazy var withoutFrames = advertisement.with([])
        let audience: Audience
        fileprivate let changes: RecordedChanges

        fileprivate init(
            of device: DeviceObject,
            _ advertisement: HeardAdvertisement,
            _ audience: Audience,
            _ changes: RecordedChanges
        ) {
            (self.device, self.advertisement) = (device, advertisement)
            (self.audience, self.changes) = (audience, changes)
        }
    }

    /// The watched advertisements; `nil` for none.
    var watch: AdvertisementWatch? {
        didSet { last = DBusPathTable() }
    }
    private var last = DBusPathTable<Last>()

    /// The consumers of the advertisements of a device.
    func audience(of device: DeviceObject, _ id: PeripheralID) -> Audience {
        guard let watch else { return Audience(isWatched: false, isPrompt: true) }
        let isResolvable = watch.includesResolvable && device.hasPrivateAddress && id.address.isResolvable
        return Audience(
            isWatched: watch.includesAll || isResolvable || watch.addresses.contains(id.address),
            isPrompt: watch.promptAddresses?.contains(id.address) ?? true
        )
    }

    // MARK: - Repetitions

    /// Returns the last advertisement of a device if the signal repeats it.
    func repetition(in signal: borrowing DBusSignal) -> (last: Last, repetition: RecordedChanges.Repetition)? {
        guard let last = last.value(for: signal), let found = last.changes.repetition(in: signal) else { return nil }
        return (last, found)
    }

    /// Records the last advertisement of a device, with the frames of a repetition.
    ///
    /// - Parameters:
    ///   - advertisement: The advertisement.
    ///   - audience: Its consumers.
    ///   - device: The device.
    ///   - signal: The signal that has reported it.
    mutating func record(
        _ advertisement: HeardAdvertisement,
        _ audience: Audience,
        of device: DeviceObject,
        from signal: borrowing DBusSignal
    ) {
        let changes = RecordedChanges(signal, of: BlueZ.device, variable: "RSSI")
        last[signal.path] = changes.map { Last(of: device, advertisement, audience, $0) }
    }

    /// Forgets the advertisement of a device that has changed.
    mutating func forget(_ path: String) {
        last[path] = nil
    }

    mutating func forgetAll() {
        last = DBusPathTable()
    }
}
