import GattherdSync

/// The connection to a client that receives several replies to one request.
public struct ControlStream: Sendable {
    /// Sends a reply that is not the last one.
    public let send: @Sendable (ControlReply) -> Void
    /// True as soon as the client has closed its side of the connection.
    let hangUp: LatestValue<Bool>

    /// Returns when the client closes its side or the caller is cancelled.
    public func waitForHangUp() async {
        for await hasHungUp in hangUp.watch() where hasHungUp { return }
    }
}
