/// A GATT request that the peripheral has not answered yet.
struct GATTRequest: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case read(Int, offset: Int)
        case write(Int, [UInt8], offset: Int)
        case startNotify(Int)
        case acquireNotify(Int)
        case readDescriptor(Int, place: Int, offset: Int)

        var characteristic: Int {
            switch self {
            case .read(let index, _), .write(let index, _, _), .startNotify(let index), .acquireNotify(let index),
                .readDescriptor(let index, _, _):
                index
            }
        }
    }

    let key: DeviceKey
    let call: MethodCall
    let kind: Kind
    /// True while the request waits for encryption.
    fileprivate(set) var isHeld = false
}

/// The pending GATT requests, by number.
final class RequestTable {
    private var requests: [UInt64: GATTRequest] = [:]

    var all: [GATTRequest] { Array(requests.values) }

    func insert(_ request: GATTRequest, _ id: UInt64) {
        requests[id] = request
    }

    func remove(_ id: UInt64) -> GATTRequest? {
        requests.removeValue(forKey: id)
    }

    /// Keeps a request until the link is encrypted.
    func hold(_ request: GATTRequest, _ id: UInt64) {
        requests[id] = request
        requests[id]?.isHeld = true
    }

    /// The requests of a device that wait for encryption, oldest first.
    func held(by key: DeviceKey) -> [UInt64] {
        requests.filter { $0.value.key == key && $0.value.isHeld }.keys.sorted()
    }

    /// Removes and returns a device's requests, oldest first.
    func removeAll(of key: DeviceKey) -> [GATTRequest] {
        removeAll { $0.key == key }
    }

    /// Removes and returns a client's requests, oldest first.
    func removeAll(from client: String) -> [GATTRequest] {
        removeAll { $0.call.sender == client }
    }

    private func removeAll(where isRemoved: (GATTRequest) -> Bool) -> [GATTRequest] {
        let removed = requests.filter { isRemoved($0.value) }.sorted { $0.key < $1.key }
        for (id, _) in removed { requests[id] = nil }
        return removed.map(\.value)
    }
}
