import GattherdBluetooth
import GattherdGATT

/// The device objects by path, found by their addresses as well.
struct DeviceObjects {
    private var objects: [String: DeviceObject] = [:]
    /// The paths of the devices with an address; an adapter may have two of them.
    private var paths: [BluetoothAddress: Set<String>] = [:]
    /// The number of links so far.
    private var linkCount: UInt64 = 0

    subscript(path: String) -> DeviceObject? { objects[path] }

    /// All devices, with their paths.
    var all: [String: DeviceObject] { objects }

    /// The paths of the devices with an address.
    func paths(of address: BluetoothAddress) -> Set<String> { paths[address] ?? [] }

    /// The paths of the devices of an adapter, in order.
    func paths(ofAdapter adapter: String) -> [String] {
        objects.filter { $0.value.adapterPath == adapter }.keys.sorted()
    }

    /// True if the first of two objects with one address is to be used: the connected object, else the object that a
    /// scan hears, else the object with the newer link.
    func prefers(_ path: String, to other: String) -> Bool {
        guard let first = objects[path], let second = objects[other] else { return objects[path] != nil }
        guard first.isConnected == second.isConnected else { return first.isConnected }
        guard first.isHeard == second.isHeard else { return first.isHeard }
        return (first.link, other) > (second.link, path)
    }

    // MARK: - Changes

    /// Adds or changes a device; returns the frames of an advertisement, or `nil` for other changes.
    mutating func apply(_ changes: PropertyChanges, to path: String) -> [HeardAdvertisement.Frame]? {
        let wasConnected = objects[path]?.isConnected ?? false
        let address = objects[path]?.address
        let device = objects[path] ?? DeviceObject(path: path)
        objects[path] = device
        let frames = device.apply(changes)
        updatePaths(of: path, before: address)
        if !wasConnected, device.isConnected {
            linkCount += 1
            device.link = linkCount
        }
        return frames
    }

    /// Ends the link of a device whose adapter was switched off, also without a signal for each.
    func endLink(_ path: String) {
        objects[path]?.isConnected = false
    }

    /// Continues the link numbers of a peripheral that another object showed until now.
    func raiseLink(_ path: String, to link: UInt64) {
        guard let device = objects[path], device.link < link else { return }
        objects[path]?.link = link
    }

    /// Records the reason of a link's end, which may follow.
    func recordEndReason(_ path: String, _ reason: DisconnectReason) {
        objects[path]?.endReason = reason
    }

    mutating func remove(_ path: String) {
        let address = objects.removeValue(forKey: path)?.address
        updatePaths(of: path, before: address)
    }

    /// Removes all devices; keeps the number of links.
    mutating func removeAll() {
        (objects, paths) = ([:], [:])
    }

    private mutating func updatePaths(of path: String, before: BluetoothAddress?) {
        let address = objects[path]?.address
        guard address != before else { return }
        if let before {
            paths[before]?.remove(path)
            if paths[before]?.isEmpty == true { paths[before] = nil }
        }
        if let address { paths[address, default: []].insert(path) }
    }
}
