-- Every exchange with the bodies of its request and response, as long as bronze.frames keeps its frames.
{with_bodies}
