import GattherdDBus

/// The ordered failures of the next calls of methods.
struct FaultList: Hashable, Sendable {
    enum Fault: Hashable, Sendable {
        case error(DBusError)
        /// Never answers the call.
        case noReply
    }

    private struct Order: Hashable, Sendable {
        let method: String
        let fault: Fault
        var times: Int
    }

    private var orders: [Order] = []

    mutating func add(_ fault: Fault, of method: String, times: Int) {
        guard times > 0 else { return }
        orders.append(Order(method: method, fault: fault, times: times))
    }

    /// Removes and returns the next fault of a method, if one was ordered.
    mutating func removeNext(_ method: String) -> Fault? {
        guard let index = orders.firstIndex(where: { $0.method == method }) else { return nil }
        orders[index].times -= 1
        let fault = orders[index].fault
        if orders[index].times == 0 { orders.remove(at: index) }
        return fault
    }
}
