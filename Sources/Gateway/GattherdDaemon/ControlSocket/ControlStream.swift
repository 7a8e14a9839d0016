import GattherdSync

/// The way back to a client that gets several answers to one request.
public struct ControlStream: Sendable {
    /// Sends an answer that is not the last one.
    public let send: @Sendable (ControlReply) -> Void
    /// True from when the client has closed its side of the connection.
    let hangUp: LatestValue<Bool>

    /// Returns when the client has closed its side, or the caller is cancelled.
    public func waitForHangUp() async {
        for await hasHungUp in hangUp.watch() where hasHungUp { return }
    }
}
