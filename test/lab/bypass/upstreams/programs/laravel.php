<?php
// The routes in Laravel's router.
require '/usr/share/php/Illuminate/autoload.php';

use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Routing\Router;
use Symfony\Component\HttpKernel\Exception\HttpExceptionInterface;

$container = new Container();
Container::setInstance($container);
$router = new Router(new Dispatcher($container), $container);
$free = fn () => 'free';
$paid = function () {
    file_put_contents(getenv('HITS'), 'x', FILE_APPEND);
    return 'paid for';
};
$router->get('/v1/reports/open', $free);
$router->get('/v1/files/public', $free);
$router->get('/v1/export', $paid);
$router->get('/v1/reports/{id}', $paid);
$router->get('/v1/files/{rest}', $paid)->where('rest', '.+');
$router->post('/v1/teams/{team}/jobs/{job}', $paid);
$router->get('/v1/Kiss/Data', $paid);
$router->get('/v1/my report', $paid);
$router->get('/v1/daily_report', $paid);
$router->get('/v1/data.json', $paid);
try {
    $router->dispatch(Request::capture())->send();
} catch (HttpExceptionInterface $error) {
    http_response_code($error->getStatusCode());
    echo 'not found';
}
