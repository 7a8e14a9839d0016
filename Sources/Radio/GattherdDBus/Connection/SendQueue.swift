/// Messages that the kernel has not taken.
struct SendQueue {
    private struct Item {
        var octets: ArraySlice<UInt8>
        var descriptors: [DBusDescriptor]
    }

    private var items: [Item] = []

    var isEmpty: Bool { items.isEmpty }

    mutating func append(_ octets: [UInt8], _ descriptors: [DBusDescriptor]) {
        items.append(Item(octets: octets[...], descriptors: descriptors))
    }

    /// Writes what the kernel takes; on a connection that has ended everything is let go of.
    mutating func flush(to socket: BusSocket) {
        var done = 0
        sending: while done < items.count {
            switch socket.send(items[done].octets, items[done].descriptors) {
            case .some(let count):
                items[done].octets.removeFirst(count)
                items[done].descriptors = []
                if items[done].octets.isEmpty { done += 1 }
            case .blocked: break sending
            case .ended: done = items.count
            }
        }
        items.removeFirst(done)
    }
}
